#!/usr/bin/env bash
# Runs a command with what it needs: `scripts/with.sh NEED... -- COMMAND...`. The needs are those of setup.sh.
source "$(dirname "$0")/env.sh"

needs=()
while [ "$1" != -- ]; do
  needs+=("$1")
  shift
done
shift

scripts/setup.sh "${needs[@]}"
exec "$@"
