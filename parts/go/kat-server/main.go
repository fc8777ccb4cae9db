// Emissary's test server for external authorization over gRPC, on ports of the test's choice: Emissary's own program has fixed ones.
package main

import (
	"context"
	"flag"

	"github.com/emissary-ingress/emissary/v3/cmd/kat-server/services"
)

func main() {
	port := flag.Int("port", 8080, "where it answers in plaintext")
	securePort := flag.Int("secure-port", 8443, "where it answers over TLS")
	certificate := flag.String("certificate", "server.crt", "the file of its certificate")
	key := flag.String("key", "server.key", "the file of its private key")
	flag.Parse()
	server := services.GRPCAuthV3{
		Port:            int16(*port),
		Backend:         "kat-server",
		SecurePort:      int16(*securePort),
		SecureBackend:   "kat-server",
		Cert:            *certificate,
		Key:             *key,
		ProtocolVersion: "v3",
	}
	<-server.Start(context.Background())
}
