//go:build acmesolver

// The program of the pods that answer an HTTP-01 challenge, with the flags that cert-manager gives them.
package main

import (
	"flag"
	"log"

	"github.com/cert-manager/cert-manager/pkg/issuer/acme/http/solver"
	"github.com/cert-manager/cert-manager/pkg/logs"
)

func main() {
	port := flag.Int("listen-port", 8089, "where it answers")
	domain := flag.String("domain", "", "the host of the challenge")
	token := flag.String("token", "", "the token of the challenge")
	key := flag.String("key", "", "what it answers with")
	flag.Parse()

	answers := solver.HTTP01Solver{ListenPort: *port, Domain: *domain, Token: *token, Key: *key}
	log.Fatal(answers.Listen(logs.Log))
}
