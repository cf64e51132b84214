#!/usr/bin/env bash
# Faults on every way out of crablet (pkg-tests/faults), on a schedule that FAULTS and SEED set, against the real
# crablet-shim. AT=model, mcp-http, shim or store plays one boundary, ONLY=N one script, of which it prints all that is
# known.
source "$(dirname "$0")/env.sh"

cargo build --quiet --locked --package crablet-shim --package crablet-faults
target/debug/crablet-faults native

# The same with a defect in crablet, one after another: each has to be found.
if [ -z "${ONLY:-}${AT:-}" ]; then
  cargo build --quiet --locked --package crablet-faults --features crablet-faults/planted-defects
  target/debug/crablet-faults sensitivity
fi
