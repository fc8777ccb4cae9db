//go:build tools

package tools

import (
	_ "github.com/projectcontour/contour/apis/projectcontour/v1"
)
