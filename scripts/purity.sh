#!/usr/bin/env bash
# The core does no I/O, and what it is built from shows it: without a host it depends on nothing but reading and writing
# JSON, and its source names no clock, socket, thread, randomness, lock or future. A build with one provider has only that.
source "$(dirname "$0")/env.sh"

features=anthropic,openai-chat,openai-responses,azure,gemini,vertex,mcp-server
allowed="crablet serde serde_core serde_derive serde_json thiserror thiserror-impl itoa memchr zmij
  proc-macro2 quote syn unicode-ident"
# The proof of the shim's handshake, Bedrock's signatures and OAuth are pure too, and need a hash.
allowed_hash="$allowed sha2 hmac digest block-buffer crypto-common hybrid-array typenum cfg-if cpufeatures libc cmov
  ctutils"

failures=0

# check_tree FEATURES ALLOWED: every crate of the normal dependency tree is one of the allowed ones.
check_tree() {
  local crate list
  # `cargo tree`, since `cargo metadata` unifies the features of the whole workspace.
  list=$(cargo tree --locked -p crablet --no-default-features --features "$1" -e normal --target all --prefix none \
    --format '{p}' | awk 'NF { print $1 }' | sort -u)
  for crate in $list; do
    if ! grep -qxF -- "$crate" < <(tr -s ' \n' '\n' <<<"$2"); then
      echo "crablet with the features '$1' depends on '$crate', which is not on the list in scripts/purity.sh"
      failures=$((failures + 1))
    fi
  done
}

# Patterns that the core's own source must not hold, comments and tests left out.
impure='std::(time|net|thread|fs|process|env|io)\b|\b(rand|getrandom|tokio|futures|futures_util|wasm_bindgen|js_sys|web_sys)::'
impure+='|\basync (fn|move|\{|\|)|\.await\b|\b(Rc|RefCell|Mutex|RwLock|OnceLock|LazyLock)\b|\bthread_local!|\b(SystemTime|Instant)\b'

core_files() {
  find src -name '*.rs' -not -path 'src/host/*' -not -path 'src/web/*' -not -path 'src/native/*' \
    -not -path 'src/agent_service/*' \
    -not -path 'src/bindings/*' -not -path 'src/js/*' -not -name 'tests.rs' -not -path '*/tests/*' | sort
}

# The numbered lines of a file up to its test module, comments left out.
without_tests() {
  awk '
    after_attribute && /^mod / { exit }
    { after_attribute = /^#\[cfg\(test\)\]/ }
    !/^[[:space:]]*\/\// { print FNR ": " $0 }
  ' "$1"
}

check_source() {
  local file found
  while read -r file; do
    found=$(without_tests "$file" | grep -E "$impure" || true)
    if [ -n "$found" ]; then
      echo "$file is part of the core, which has no clock, I/O, randomness, locks or futures:"
      echo "  line ${found//$'\n'/$'\n'  line }"
      failures=$((failures + 1))
    fi
  done < <(core_files)
}

wires='anthropic openai_chat openai_responses azure gemini vertex bedrock'

# check_wires FEATURE WIRE...: a build with this one provider compiles these wire protocols and no other.
check_wires() {
  local feature=$1 wire list found
  shift
  # What the compiler read stands in the list of dependencies that it writes.
  list=$(cargo check --locked --quiet --message-format=json -p crablet --lib --no-default-features --features "$feature" \
    --target-dir target/one-wire | grep -oE 'libcrablet-[0-9a-f]+' | tail -n 1)
  list=target/one-wire/debug/deps/${list#lib}.d
  for wire in $wires; do
    found=$(grep -cE "src/model/$wire(/|\.rs:)" "$list" || true)
    if grep -qw "$wire" <<<"$*"; then
      [ "$found" -gt 0 ] && continue
      echo "a build with the feature '$feature' lacks the wire protocol $wire"
    else
      [ "$found" = 0 ] && continue
      echo "a build with the feature '$feature' has the wire protocol $wire"
    fi
    failures=$((failures + 1))
  done
}

# A program that names one wire protocol links no other, though the crate was built with all of them.
check_linked() {
  local linked
  cargo build --locked --quiet -p crablet --example weather
  linked=$(nm -C target/debug/examples/weather | grep -oE "crablet::model::(${wires// /|})::" | sort -u)
  if [ "$linked" != crablet::model::openai_chat:: ]; then
    echo "the example weather names openai_chat and links:"
    echo "$linked"
    failures=$((failures + 1))
  fi
}

# The defects that tests plant are in nothing that is released.
check_planted() {
  local package
  for package in crablet crablet-bindings crablet-shim; do
    if grep -q planted-defects < <(cargo tree --locked -p "$package" -e features --target all); then
      echo "$package is built with the feature 'planted-defects', which only pkg-tests/faults may ask for"
      failures=$((failures + 1))
    fi
  done
}

check_planted
check_wires anthropic anthropic
check_wires openai-chat openai_chat
check_wires openai-responses openai_responses
check_wires azure azure openai_chat openai_responses
check_wires gemini gemini
check_wires vertex vertex gemini
check_wires bedrock bedrock
check_linked
check_tree "$features" "$allowed"
check_tree "$features,bedrock,shim,oauth" "$allowed_hash"
check_source
[ "$failures" = 0 ] || fail "the core is not pure: $failures findings"
echo "the core is pure: $(core_files | wc -l) files, $(wc -w <<<"$allowed") crates allowed"
