//go:build tools

package tools

import (
	_ "github.com/emissary-ingress/emissary/v3/pkg/apiext/defaults"
)
