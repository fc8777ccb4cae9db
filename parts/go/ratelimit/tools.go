//go:build tools

package tools

import (
	_ "github.com/envoyproxy/ratelimit/src/service_cmd"
)
