// Emissary's test servers for external authorization and for echoes, both over gRPC, on ports of the test's choice: Emissary's own program has
// fixed ones.
package main

import (
	"context"
	"flag"

	"github.com/emissary-ingress/emissary/v3/cmd/kat-server/services"
)

func main() {
	echo := flag.Bool("echo", false, "answer calls of echo.EchoService, not those of external authorization")
	port := flag.Int("port", 8080, "where it answers in plaintext")
	securePort := flag.Int("secure-port", 8443, "where it answers over TLS")
	certificate := flag.String("certificate", "server.crt", "the file of its certificate")
	key := flag.String("key", "server.key", "the file of its private key")
	flag.Parse()
	var server services.Service = &services.GRPCAuthV3{
		Port:            int16(*port),
		Backend:         "kat-server",
		SecurePort:      int16(*securePort),
		SecureBackend:   "kat-server",
		Cert:            *certificate,
		Key:             *key,
		ProtocolVersion: "v3",
	}
	if *echo {
		server = &services.GRPC{
			Port:          int16(*port),
			Backend:       "kat-server",
			SecurePort:    int16(*securePort),
			SecureBackend: "kat-server",
			Cert:          *certificate,
			Key:           *key,
		}
	}
	<-server.Start(context.Background())
}
