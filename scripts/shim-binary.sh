#!/usr/bin/env bash
# Builds crablet-shim as it is released and checks it: its size, its version with the commit, its manual page, its completions,
# and the unit for systemd in docs/shim.md where systemd is there to check it.
source "$(dirname "$0")/env.sh"

# The budget of the binary, in bytes.
budget=8000000

cargo build --quiet --release -p crablet-shim
binary=${CARGO_TARGET_DIR:-target}/release/crablet-shim

bytes=$(stat --format %s "$binary" 2>/dev/null || stat -f %z "$binary")
echo "crablet-shim: $bytes bytes of $budget"
[ "$bytes" -le "$budget" ] || fail "crablet-shim is over its budget"

commit=$(git describe --always --dirty --abbrev=12)
[[ "$("$binary" --version)" == *"($commit)" ]] || fail "--version does not name the commit $commit: $("$binary" --version)"
# Read to their ends: a pipe that closes early would end the program with an error.
[[ "$("$binary" man)" == *".TH crablet-shim"* ]] || fail "man prints no manual page"
for shell in bash zsh fish; do
  [[ "$("$binary" completions "$shell")" == *native-messaging* ]] || fail "the completions for $shell lack a command"
done

if command -v systemd-analyze >/dev/null; then
  home=$(mktemp -d)
  trap 'rm -rf "$home"' EXIT
  mkdir -p "$home/.cargo/bin"
  cp "$binary" "$home/.cargo/bin"
  awk '/^```ini$/ { inside = 1; next } /^```$/ { inside = 0 } inside' docs/shim.md >"$home/crablet-shim.service"
  HOME=$home XDG_RUNTIME_DIR=$home systemd-analyze --user verify "$home/crablet-shim.service" || fail "the unit in docs/shim.md is wrong"
  echo "the unit in docs/shim.md is right"
fi
