#!/usr/bin/env bash
# Everything that is held against committed files, through all of it; `CRABLET_WRITE_GOLDEN=1` writes the files instead.
source "$(dirname "$0")/env.sh"

status=0
cargo test --quiet --test wire_golden || status=1
cargo test --quiet -p crablet-shim --bins golden || status=1
node pkg-tests/run.mjs golden || status=1
node scripts/api.mjs || status=1
exit "$status"
