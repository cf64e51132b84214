#!/usr/bin/env bash
# Takes into fuzz/corpus what fuzzing has found to be worth beginning with: `scripts/fuzz-corpus.sh [TARGET...]`.
#
# Of each target the inputs that together pass every edge that is known to be reached; of those the larger first, since they pass
# more, as many as fit the limits. Run it after scripts/fuzz.sh, which keeps what it finds in fuzz/found.
source "$(dirname "$0")/env.sh"

max_files=128
max_bytes=32768
max_bytes_of_file=768

cargo +nightly fuzz build >"$logs/fuzz-build.log" 2>&1 || fail "the fuzz targets do not build: see $logs/fuzz-build.log"
if [ $# -gt 0 ]; then targets=("$@"); else mapfile -t targets < <(cargo +nightly fuzz list); fi
for target in "${targets[@]}"; do
  program=$(find fuzz/target -path "*/release/$target" -type f -perm -u+x | head -n 1)
  mkdir -p "fuzz/found/$target" "fuzz/corpus/$target"
  covering=$(mktemp -d)
  # Without counting how often an edge is passed.
  "$program" -set_cover_merge=1 -use_counters=0 "$covering" "fuzz/corpus/$target" "fuzz/found/$target" \
    >"$logs/fuzz-corpus-$target.log" 2>&1
  rm -f "fuzz/corpus/$target"/*
  files=0 bytes=0
  while read -r size name; do
    [ "$size" -le "$max_bytes_of_file" ] && [ "$files" -lt "$max_files" ] && [ $((bytes + size)) -le "$max_bytes" ] || continue
    cp "$covering/$name" "fuzz/corpus/$target/$name"
    files=$((files + 1)) bytes=$((bytes + size))
  done < <(find "$covering" -type f -printf '%s %f\n' | sort -rn)
  rm -r "$covering"
  echo "$target: $files inputs, $bytes bytes"
done
