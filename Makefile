# Thin: the logic is in scripts/. Each target installs what it lacks first (scripts/setup.sh) and says so.
.DEFAULT_GOAL := help
.PHONY: help demo demo-check test test-further test-all package package-tests cases cases-package conformance recorded scale-test size bench bench-shim soak docs docs-api golden golden-accept lint fuzz faults

package_needs := rust wasm npm:src/js
matrix_needs := npm:pkg-tests npm:pkg-tests/runtimes npm:pkg-tests/bundlers npm:www/demo chromium firefox
golden_needs := $(package_needs) public-api npm:pkg-tests npm:docs/reference npm:www/demo chromium
demo_needs := $(package_needs) npm:www npm:www/demo

help: ## Lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Starts the demo and prints its address; MODEL_URL=… MODEL=… API_KEY=… uses another model
	@scripts/with.sh $(demo_needs) -- node www/demo/demo.mjs

demo-check: ## Drives the demo in a real Chromium and checks what it shows
	@scripts/with.sh $(demo_needs) chromium -- node www/demo/demo-check.mjs

test: ## Runs what a newcomer runs: the Rust tests, the packed npm package, the demo
	@scripts/suites.sh test

test-further: ## Runs what test-all adds to test
	@scripts/suites.sh further

test-all: ## Runs every suite
	@scripts/suites.sh test further

package: ## Builds the npm package into dist/
	@scripts/with.sh $(package_needs) -- node scripts/package.mjs

package-tests: package ## Runs an agent of the packed npm package in every runtime, browser and bundler
	@scripts/with.sh $(package_needs) $(matrix_needs) -- node pkg-tests/run.mjs runtimes browser firefox bundlers

cases: ## Runs the cases; CRABLET_CASES=FOLDER runs another folder of them
	@scripts/with.sh rust -- cargo test --quiet --no-fail-fast --test cases --test mcp_http_cases

cases-package: package ## Runs the cases through the packed npm package
	@scripts/with.sh $(package_needs) npm:pkg-tests -- node scripts/cases-package.mjs

conformance: package ## Runs the official MCP conformance suite against client and server
	@scripts/with.sh $(package_needs) npm:pkg-tests/conformance -- node scripts/conformance.mjs

recorded: package ## Runs the recorded traffic natively and through the npm package; CRABLET_RECORDED=FOLDER names its folder
	@scripts/with.sh $(package_needs) npm:pkg-tests -- node scripts/recorded.mjs

scale-test: package ## Runs servers and agents over a real nats-server, with many calls and processes that are killed
	@scripts/with.sh $(package_needs) nats npm:pkg-tests npm:pkg-tests/nats npm:www/demo chromium -- scripts/scale.sh

size: package ## Prints the bytes of each module and entry of the npm package, and of a Rust program with one provider
	@scripts/with.sh $(package_needs) -- node scripts/one-provider.mjs
	@scripts/with.sh $(package_needs) -- node scripts/size.mjs

bench: package ## Measures the packed npm package beside its peers, against the targets
	@scripts/with.sh $(package_needs) npm:pkg-tests/bench chromium -- node pkg-tests/bench/run.mjs

bench-shim: ## Measures crablet-shim beside direct stdio, a bare relay and other bridges, against the targets
	@scripts/with.sh rust npm:pkg-tests/bench -- node pkg-tests/bench/shim.mjs

soak: package ## Hundreds of sessions and shim clients come and go for MINUTES (5), and nothing grows
	@scripts/with.sh rust npm:pkg-tests npm:www/demo chromium -- node pkg-tests/soak/run.mjs --minutes $(or $(MINUTES),5)

docs: docs-api ## Writes the documentation as a site into dist/docs/
	@scripts/with.sh npm:docs/reference -- node scripts/site.mjs

docs-api: ## Writes the API reference of the npm package and the crate into target/reference/
	@scripts/with.sh rust npm:src/js npm:docs/reference -- node scripts/reference.mjs

golden: package ## Holds event streams, sessions, bodies of requests and the public API against what is committed
	@scripts/with.sh $(golden_needs) -- scripts/golden.sh

golden-accept: package ## Commits to what is there now: writes the golden files; read the difference before you commit it
	@CRABLET_WRITE_GOLDEN=1 scripts/with.sh $(golden_needs) -- scripts/golden.sh

fuzz: ## Runs each fuzz target for FUZZ_SECONDS (60)
	@scripts/with.sh fuzz -- scripts/fuzz.sh

faults: package ## Injects FAULTS (10000) faults at model, MCP server, shim and store of crate and package, from the script SEED on
	@scripts/with.sh $(package_needs) npm:pkg-tests -- scripts/faults.sh

lint: ## Checks formatting, lints, docs, features, dependencies and the purity of the core
	@scripts/lint.sh
