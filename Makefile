# What there is to do here; bare `make` lists it. Each target brings the parts it needs first (see parts/pins.toml).

.DEFAULT_GOAL := help
# `cargo xtask`, built from the same dependencies as everything else: cargo chooses their features by the packages that are asked for, all
# of them here. With `-p xtask`, as in .cargo/config.toml for any folder of the tree, a part of them is compiled once more.
XTASK = cargo run -q --bin xtask --
.PHONY: help demo test conformance e2e differential bench bench-micro lint fmt image release parts cluster cluster-down rust

help:
	@echo "make <target>:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 17

demo: rust ## a folder of YAML served by a local Envoy: requests, what made each answer, an edit arriving
	@tools/demo

test: rust ## all tests, against the real parts; ends with one line of counts
	@$(XTASK) test

# TEST=HTTPRouteWeight (one test)  PACKING=plain (the other packing)  SESAME_KUBECONFIG=… (a cluster that is up and has the images)
# CONFORMANCE='--out FOLDER -- -disable-parallel-tests' (anything else that the program or the suite takes)
conformance: rust ## the Gateway API conformance suite, all five gateway profiles, on a Kubernetes node (root)
	@$(XTASK) parts cluster conformance
	@cargo build -q -p sesame -p conformance
	@$(if $(SESAME_KUBECONFIG),,tools/sandbox --) $${CARGO_TARGET_DIR:-target}/debug/conformance \
		--sesame $${CARGO_TARGET_DIR:-target}/debug/sesame $(if $(TEST),--test $(TEST)) $(if $(PACKING),--packing $(PACKING)) $(CONFORMANCE)

# ONLY=leader-kill (one scenario, or several with commas)  E2E='--list' (anything else that `e2e --help` lists)
e2e: rust ## installs, rollouts, kills, outages and rotations under load on a Kubernetes of two nodes (root); ends with a table
	@$(XTASK) parts cluster helm contour-examples $(if $(if $(ONLY),$(findstring cert-manager,$(ONLY)),all),acme) \
		$(if $(if $(ONLY),$(findstring beside-contour,$(ONLY)),all),contour)
	@previous=$(if $(if $(ONLY),$(findstring upgrade,$(ONLY)),all),$$($(XTASK) previous)) && \
		cargo build -q -p sesame -p e2e && \
		tools/sandbox -- $${CARGO_TARGET_DIR:-target}/debug/e2e --sesame $${CARGO_TARGET_DIR:-target}/debug/sesame \
		$${previous:+--previous "$$previous"} $(if $(ONLY),--only $(ONLY)) $(E2E)

# SETS=1000  SEED=2 (other sets)  DIFFERENTIAL='--only 17' (anything else that `differential --help` lists)
# DIFFERENTIAL='--time 1000' (only the seconds and memory of Emissary's compiler, each Mapping with a Host of its own; --hosts 1: all with one)
differential: rust ## the same objects by Emissary's own compiler and by Sesame, the same requests to both; lists what differs. DIFFERENTIAL='--time 1000': how long Emissary's compiler takes
	@$(XTASK) parts envoy differential
	@cargo build -q -p differential
	@tools/sandbox -- $${CARGO_TARGET_DIR:-target}/debug/differential $(if $(SETS),--sets $(SETS)) $(if $(SEED),--seed $(SEED)) $(DIFFERENTIAL)

# SIZES=1000,10000  PEERS=1 (Contour, too)  CERTS=1000,10000 (a certificate for each host)  PROXIES=1000,10000 (HTTPProxies)  PROTECTED=10000 (a third of them protected)  ROUTES=1000,10000 (HTTPRoutes, beside Ingresses)  MAPPINGS=1000,10000 (Emissary's, beside Ingresses; BENCH='--mapping-shape own' or every: as many Hosts)  FORCE=1 (busy machine)
# HOSTILE=1 (one tenant's attacks instead)  ATTACKS=large-root,hung-get (only these)
# MARKDOWN=1 (tables for docs/benchmarks.md)  BENCH='--samples 10 --serve=…' (anything else that `bench --help` lists)
QUICK = $${CARGO_TARGET_DIR:-target}/quick-release
bench: rust ## changes from the API server to a served request, at all sizes (docs/benchmarks.md); PEERS=1: Contour's, too
	@$(XTASK) parts envoy etcd kube-apiserver contour-crds gateway-api-crds $(if $(PEERS),peers)
	@cargo build -q --profile quick-release -p sesame -p bench
	@tools/sandbox -- $(QUICK)/bench --sesame $(QUICK)/sesame $(if $(SIZES),--sizes $(SIZES)) $(if $(PEERS),--peers) \
		$(if $(CERTS),--certificates $(CERTS)) $(if $(PROXIES),--proxies $(PROXIES)) $(if $(PROTECTED),--protected $(PROTECTED)) $(if $(ROUTES),--routes $(ROUTES)) $(if $(MAPPINGS),--mappings $(MAPPINGS)) $(if $(FORCE),--force) $(if $(MARKDOWN),--markdown) \
		$(if $(HOSTILE),--hostile) $(if $(ATTACKS),--attacks $(ATTACKS)) $(BENCH)
	$(if $(MICRO),@$(MAKE) --no-print-directory bench-micro)

bench-micro: rust ## what each station costs, alone: every benchmark in crates/*/benches
	@$(XTASK) parts envoy
	@for file in crates/*/benches/*.rs crates/*/benches/*/main.rs; do \
		crate=$${file#crates/}; crate=$${crate%%/*}; name=$${file##*/benches/}; name=$${name%.rs}; name=$${name%/main}; \
		echo "== $$crate $$name"; \
		cargo bench -q --profile quick-release -p $$crate --bench $$name || exit 1; done

lint: rust ## formatting, clippy, generated manifests, and licences and sources of all dependencies
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(XTASK) neutral
	$(XTASK) crds --check
	$(XTASK) deploy --check
	$(XTASK) deny

fmt: rust ## format the code
	cargo fmt --all

# ARCH=arm64 (needs a cross toolchain; the error says what is missing)
image: rust ## the container image in dist: OCI layout and archive, without a daemon
	@cargo run -q -p release -- image $(if $(ARCH),--arch $(ARCH))

release: rust ## everything that is published of a version in dist, with checksums; nothing is uploaded
	@cargo run -q -p release -- all $(if $(ARCH),--arch $(ARCH))

parts: rust ## bring all parts: Envoy, etcd, Kubernetes and others, at pinned versions, into the cache
	@$(XTASK) parts

cluster: rust ## a Kubernetes of your own on this machine (root); prints its kubeconfig
	@$(XTASK) parts cluster
	@cargo run -q -p testbed --bin cluster -- up

cluster-down: rust ## take that cluster away again
	@cargo run -q -p testbed --bin cluster -- down

# Cargo can say what else is missing; without cargo or a linker nobody can.
rust:
	@command -v cargo >/dev/null || { echo "cargo is missing: get Rust from https://rustup.rs" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "cc is missing: a C compiler links Rust (Debian: apt-get install gcc libc6-dev)" >&2; exit 1; }
