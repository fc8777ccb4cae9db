//go:build tools

package tools

import (
	_ "sigs.k8s.io/gateway-api/apis/v1"
)
