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

part "the default shim has no NATS in it" no_nats_by_default
export CRABLET_SHIM_NATS=$root/target/crablet-shim-nats
part "the shim with NATS" build_shim
part "servers over NATS, natively" cargo test --quiet --package crablet --features nats --test nats
part "servers over NATS" node pkg-tests/run.mjs nats scale
part "the store of conversations in NATS, natively" cargo test --quiet -p crablet --features nats --test nats_store
part "an agent behind subjects, of the packed package" node pkg-tests/run.mjs agent-service

[ ${#failures[@]} = 0 ] || fail "failed: $(printf '%s; ' "${failures[@]}")"
