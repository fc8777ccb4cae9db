module sesame.invalid/parts/emissary-crds

go 1.26.0

require github.com/emissary-ingress/emissary/v3 v3.10.0
