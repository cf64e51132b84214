#!/usr/bin/env bash
# Every check that needs no run of the code. Goes through all of them, then fails if one did.
source "$(dirname "$0")/env.sh"

failures=()

check() {
  local name=$1
  shift
  echo "-- $name"
  "$@" || failures+=("$name")
}

# The package's build writes nothing for `{:?}` (docs/decisions/0034).
no_debug_texts_in_the_module() {
  git ls-files 'src/*.rs' src/agent src/bindings src/host src/json src/mcp src/model src/web |
    grep -E '\.rs$' | grep -vE '/tests?/|_tests?\.rs|tests\.rs|/server/|src/(host/tools|native|agent_service)/' |
    xargs awk 'FNR == 1 { tests = 0 } /#\[cfg\(test\)\]/ { tests = 1 }
      !tests && /:#?\?\}/ && !/^ *\/\// { print FILENAME ":" FNR ": " $0; found = 1 } END { exit found }'
}

# Lock files name packages and their hashes, not the registry that one machine happens to use.
lock_files_name_no_registry() {
  ! git ls-files '*package-lock.json' | xargs --no-run-if-empty grep -nE '"resolved": "https?:'
}

scripts/setup.sh rust wasm windows deny hack npm:.

check "rust formatting" cargo fmt --all --check
check "clippy, native" cargo clippy --quiet --workspace --all-targets --features crablet/tools,crablet/mcp-server -- -D warnings
check "clippy, over NATS" \
  cargo clippy --quiet -p crablet -p crablet-shim --all-targets --features crablet/nats,crablet-shim/nats -- -D warnings
check "clippy, wasm" cargo clippy --quiet -p crablet-bindings -p crablet-example-wasm -p crablet-one-provider --target wasm32-unknown-unknown -- -D warnings
check "no debug texts in the module" no_debug_texts_in_the_module
check "clippy, windows" cargo clippy --quiet -p crablet-shim --target x86_64-pc-windows-gnu -- -D warnings
check "rust docs" env RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --features crablet/tools,crablet/mcp-server
check "each feature alone" \
  cargo hack --quiet clippy -p crablet --each-feature --exclude-features web -- -D warnings
check "the web feature, on wasm" \
  cargo clippy --quiet -p crablet --no-default-features --features web --target wasm32-unknown-unknown -- -D warnings
check "purity of the core" scripts/purity.sh
check "dependencies" cargo deny --log-level warn check bans licenses sources
check "javascript formatting and lints" node_modules/.bin/biome ci --colors=off --error-on-warnings
check "the comparison in docs/agent.md" node scripts/feature-table.mjs
check "the tests named in docs/security.md" node scripts/threats.mjs
check "no unsafe code" node scripts/unsafe.mjs
check "the permissions of the example extension" node scripts/permissions.mjs
check "versions" node scripts/versions.mjs
check "words that Rust and TypeScript share" node scripts/shared-types.mjs
check "lock files" lock_files_name_no_registry

[ ${#failures[@]} = 0 ] || fail "not clean: $(printf '%s; ' "${failures[@]}")"
echo "everything is clean"
