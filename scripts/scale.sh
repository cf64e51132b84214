#!/usr/bin/env bash
# What works across machines, over a real nats-server: `make scale-test`. Goes through all parts, then fails if one did.
source "$(dirname "$0")/env.sh"

failures=()

part() {
  local name=$1
  shift
  echo "-- $name"
  "$@" || failures+=("$name")
}

# Who does not ask for NATS does not build it.
no_nats_by_default() {
  ! cargo tree --package crablet-shim --edges normal,build --prefix none --format "{lib}" | grep -i nats
}

# The shim with the feature, where no other build takes its place.
build_shim() {
  cargo build --quiet --package crablet-shim --features nats && cp target/debug/crablet-shim "$CRABLET_SHIM_NATS"
}

# Where no other build takes its place. Built as the tests are; the figures of docs/scale.md are of one that is built for speed, with
# CARGO_PROFILE_DEV_OPT_LEVEL=2.
build_ledger_worker() {
  cargo build --quiet --package crablet --features nats --example ledger_worker &&
    cp target/debug/examples/ledger_worker "$CRABLET_LEDGER_WORKER"
}

part "the default shim has no NATS in it" no_nats_by_default
export CRABLET_SHIM_NATS=$root/target/crablet-shim-nats
part "the shim with NATS" build_shim
part "servers over NATS, natively" cargo test --quiet --package crablet --features nats --test nats
part "servers over NATS" node pkg-tests/run.mjs nats scale
part "the store of conversations in NATS, natively" cargo test --quiet -p crablet --features nats --test nats_store
part "an agent behind subjects, natively" cargo test --quiet -p crablet --features nats --test agent_service
part "what decides, without a server" cargo test --quiet -p crablet --features nats --lib agent_service
part "the examples over NATS" cargo test --quiet -p crablet --features nats --doc -- agent_service native::nats
export CRABLET_LEDGER_WORKER=$root/target/crablet-ledger-worker
part "the worker of the tests" build_ledger_worker
part "an agent behind subjects, of the packed package and over workers in Rust" node pkg-tests/run.mjs agent-service

[ ${#failures[@]} = 0 ] || fail "failed: $(printf '%s; ' "${failures[@]}")"
