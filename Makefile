# Everything here runs on a fresh Debian 12 with a Rust toolchain, git and make. What else is needed is
# installed by apt where we are root, and named where we are not (scripts/needs.sh).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help build demo test dist fuzz bench peers clusters advice torture pages site lint code licences

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

build: ## Build the trunkline command: target/release/trunkline
	cargo build --release --locked -p trunkline

demo: build ## A call beside a download behind today's queues; then Hawley's T1 trunk of 1989 with real programs (three minutes)
	target/release/trunkline demo --best-effort
	scripts/demo.sh

test: ## All tests of the workspace, the end-to-end ones included; tells what was skipped, and why
	scripts/needs.sh test
	scripts/test.py --workspace

dist: ## Static binaries, Debian packages and OCI images for x86_64 and aarch64: dist/
	scripts/needs.sh dist
	scripts/dist.sh

fuzz: ## Every decoder searched with libFuzzer, SECONDS (30) each: executions, edges covered, crashes
	scripts/fuzz.sh $(or $(SECONDS),30)

bench: ## The dataplane against a bare forwarder and direct veth; instructions per packet; the simulator per packet-hop
	scripts/bench.sh

peers: build ## Movers of bulk data side by side over nine paths: `send`, TCP, rsync, QUIC, UDT, uftp (an hour, root)
	scripts/needs.sh peers
	cargo build --release --locked -p trunkline-bench
	scripts/peers.py --out peers.json

clusters: build ## Messages of both layers beside libfabric, UCX, Open MPI, Aeron: latency, rate, instructions (fifteen minutes, root)
	scripts/needs.sh clusters
	scripts/peers/aeron.sh
	cargo build --release --locked -p trunkline-bench
	target/release/trunkline-bench --only messages,message-instructions

advice: ## What `trunkline explain` says of 300 scenarios drawn by chance, against the changes themselves (ten minutes)
	cargo run --release --locked -p trunkline-explain --example advice -- 300 1

torture: build ## Kills, too little of everything, closed streams, attacks on the server: tried and survived (some minutes, root)
	scripts/torture.sh

pages: build ## Nine report pages looked at in Chromium: screenshots, sizes, accessibility (some minutes)
	scripts/needs.sh pages
	scripts/pages.sh

site: ## The pages of docs/ as a site: target/site/index.html
	scripts/needs.sh site
	PATH=$$PWD/target/tools/bin:$$PATH mdbook build

lint: code licences ## Formatting, clippy and documentation, warnings denied; whether fuzz/Cargo.lock is true; licences, duplicates, sources of crates

code:
	scripts/needs.sh code
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --locked
	cargo tree --locked --manifest-path fuzz/Cargo.toml >/dev/null

licences:
	scripts/licences.py
