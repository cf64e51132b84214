#!/usr/bin/env bash
# Faults on every way out of crablet (pkg-tests/faults), on a schedule that FAULTS and SEED set, against the real
# crablet-shim: natively, and with the packed npm package of dist/ in Node. AT=model, mcp-http, shim or store plays one
# boundary, ONLY=N one script, of which it prints all that is known; BUILD=native or node one build.
source "$(dirname "$0")/env.sh"

# Every write of a store is synced, which a busy disk makes long; no power is cut here.
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then
  export TMPDIR=/dev/shm
fi
harness=target/debug/crablet-faults

# play_natively WHAT, play_in_node WHAT FOLDER: the folder is that of the tarball.
play_natively() {
  [ "${BUILD:-native}" != native ] || "$harness" "$1"
}
play_in_node() {
  [ "${BUILD:-node}" != node ] || node pkg-tests/faults/node/run.mjs "$2" "$harness" "$1"
}

cargo build --quiet --locked --package crablet-shim --package crablet-faults
play_natively play
play_in_node play dist

# The same with a defect in crablet, one after another: each has to be found.
if [ -z "${ONLY:-}${AT:-}" ]; then
  cargo build --quiet --locked --package crablet-faults --features crablet-faults/planted-defects
  play_natively sensitivity
  if [ "${BUILD:-node}" = node ]; then
    node scripts/package.mjs --planted
  fi
  play_in_node sensitivity dist/planted
fi
