# shellcheck shell=bash
# What every script of this folder starts with: `source "$(dirname "$0")/env.sh"`. Sets the folders, the tool versions
# and a PATH on which the pinned tools come first.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Outside the checkout, so that a fresh clone does not build the tools again.
cache=${CRABLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/crablet}
logs=$root/target/logs

# The version of a tool in tools.versions.
tool_version() {
  awk -v tool="$1" '$1 == tool { print $2; found = 1 } END { exit !found }' "$root/tools.versions"
}

# Where `cargo install` puts a pinned tool.
tool_folder() {
  echo "$cache/tools/$1-$(tool_version "$1")"
}

fail() {
  echo "error: $*" >&2
  exit 1
}

for tool in wasm-pack wasm-bindgen-cli cargo-deny cargo-hack cargo-public-api cargo-fuzz; do
  PATH=$(tool_folder "$tool")/bin:$PATH
done
export PATH
mkdir -p "$logs"
cd "$root"
