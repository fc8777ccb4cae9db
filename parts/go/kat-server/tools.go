//go:build tools

package main

import (
	_ "github.com/emissary-ingress/emissary/v3/cmd/kat-client"
)
