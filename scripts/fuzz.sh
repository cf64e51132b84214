#!/usr/bin/env bash
# Runs each fuzz target for FUZZ_SECONDS (60): `scripts/fuzz.sh [TARGET...]`, all of them when none is named.
#
# Prints a line per target, `ok NAME` or `FAILED NAME` with the end of its output, and ends with `N passed, N failed`.
# A target begins with fuzz/corpus, which is small and committed (scripts/fuzz-corpus.sh), and with what it found so far, which is kept in
# fuzz/found; an input that broke one is in fuzz/artifacts.
source "$(dirname "$0")/env.sh"

seconds=${FUZZ_SECONDS:-60}
lines_shown=40
passed=0 failed=0

cargo +nightly fuzz build >"$logs/fuzz-build.log" 2>&1 || {
  tail -n "$lines_shown" "$logs/fuzz-build.log"
  fail "the fuzz targets do not build"
}
if [ $# -gt 0 ]; then targets=("$@"); else mapfile -t targets < <(cargo +nightly fuzz list); fi
for target in "${targets[@]}"; do
  mkdir -p "fuzz/found/$target" "fuzz/corpus/$target"
  if cargo +nightly fuzz run "$target" "fuzz/found/$target" "fuzz/corpus/$target" -- -max_total_time="$seconds" >"$logs/fuzz-$target.log" 2>&1 </dev/null; then
    echo "ok $target"
    passed=$((passed + 1))
  else
    tail -n "$lines_shown" "$logs/fuzz-$target.log"
    echo "FAILED $target"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
