// A DNS server for test clusters: CoreDNS with the plugins that answer for Services and nothing of the clouds, which
// keeps the build short and the program small.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// A query passes the plugins in this order, whatever order a Corefile has them in.
	dnsserver.Directives = []string{
		"reload", "health", "ready", "errors", "log", "cache", "template", "hosts", "kubernetes",
	}
	coremain.Run()
}
