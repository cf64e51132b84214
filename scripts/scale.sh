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

part "the default shim has no NATS in it" no_nats_by_default

part "an agent behind subjects, of the packed package" node pkg-tests/run.mjs agent-service

[ ${#failures[@]} = 0 ] || fail "failed: $(printf '%s; ' "${failures[@]}")"
