#!/usr/bin/env bash
# Installs what a target lacks: `scripts/setup.sh NEED...`. Says each thing it does in one line, and nothing when nothing
# is to be done. Made for Debian and Ubuntu with rustup and Node.
#
#   rust           the toolchain of rust-toolchain.toml, and a C compiler to link with
#   wasm           the wasm target, the standard library's sources, wasm-pack and the wasm-bindgen CLI
#   windows        the Rust target of Windows, and a C compiler for it, to check what is never run here
#   deny, hack, public-api  cargo-deny, cargo-hack, cargo-public-api
#   fuzz           cargo-fuzz and a nightly toolchain
#   node           checks the version of Node
#   npm:FOLDER     the packages of FOLDER/package-lock.json
#   python-servers the MCP servers of tools.versions that are Python packages, in .cache/python-servers, and git
#   nats           a nats-server, or the one that $NATS_SERVER names; its package's service is not left running
#   chromium       a Chromium, or the one that $CHROMIUM names
#   firefox        a Firefox, or the one that $FIREFOX names
source "$(dirname "$0")/env.sh"

say() {
  echo "set-up: $*"
}

# Runs a command with its output in a log that is shown only when the command fails.
logged() {
  local log=$logs/set-up-$1.log
  shift
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    fail "'$*' failed; the whole output is in ${log#"$root"/}"
  fi
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo -n "$@"
  else
    echo "neither root nor sudo; run as root: $*"
    return 1
  fi
}

# apt_install LOG PACKAGE...
apt_install() {
  local log=$1
  shift
  logged apt-update as_root apt-get update
  logged "$log" as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

need_rust() {
  command -v cargo >/dev/null || fail "no cargo on PATH: install Rust with rustup (https://rustup.rs), then run this again"
  if ! command -v cc >/dev/null; then
    command -v apt-get >/dev/null || fail "Rust links with a C compiler and there is none: install one that answers to cc"
    say "installing a C compiler with apt-get"
    apt_install cc gcc libc6-dev
  fi
  if ! cargo --version >/dev/null 2>&1; then
    say "installing the Rust toolchain of rust-toolchain.toml"
    logged toolchain rustup toolchain install
  fi
}

# need_target TARGET
need_target() {
  if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ]; then
    command -v rustup >/dev/null || fail "the Rust target $1 is missing and there is no rustup to add it"
    say "adding the Rust target $1"
    logged "target-$1" rustup target add "$1"
  fi
}

need_windows() {
  need_target x86_64-pc-windows-gnu
  # The cryptography of rustls is C, and compiled for a check too.
  if ! command -v x86_64-w64-mingw32-gcc >/dev/null; then
    command -v apt-get >/dev/null || fail "no C compiler for Windows: install mingw-w64"
    say "installing a C compiler for Windows with apt-get"
    apt_install mingw gcc-mingw-w64-x86-64
  fi
}

# The module is built together with the standard library (docs/decisions/0034).
need_rust_source() {
  [ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ] && return
  command -v rustup >/dev/null || fail "the sources of Rust's standard library are missing and there is no rustup to add rust-src"
  say "adding the sources of Rust's standard library"
  logged rust-src rustup component add rust-src
}

# need_cargo_tool CRATE COMMAND...: COMMAND prints the version that is on PATH.
need_cargo_tool() {
  local crate=$1 version
  shift
  version=$(tool_version "$crate")
  [[ "$("$@" 2>/dev/null || true)" =~ (^|[^0-9.])"$version"($|[^0-9.]) ]] && return
  say "building $crate $version (some minutes, kept in $(tool_folder "$crate"))"
  # One build folder for all tools: they share dependencies.
  logged "$crate" env CARGO_TARGET_DIR="$cache/build" \
    cargo install --locked --force --root "$(tool_folder "$crate")" "$crate@$version"
}

need_nightly() {
  if ! cargo +nightly --version >/dev/null 2>&1; then
    command -v rustup >/dev/null || fail "fuzzing needs a nightly toolchain and there is no rustup to install one"
    say "installing the nightly Rust toolchain"
    logged nightly rustup toolchain install nightly --profile minimal
  fi
}

need_node() {
  local least
  least=$(tool_version node)
  command -v node >/dev/null || fail "no node on PATH: install Node $least or later"
  node -e '
    const [have, least] = [process.versions.node, process.argv[1]].map((text) => text.split(".").map(Number));
    const different = have.findIndex((number, index) => number !== least[index]);
    process.exit(different === -1 || have[different] > least[different] ? 0 : 1);
  ' "$least" || fail "Node $(node --version) is too old: install Node $least or later"
}

need_npm() {
  local folder=$1 stamp=$1/node_modules/.crablet-stamp now
  need_node
  [ -f "$folder/package-lock.json" ] || fail "$folder/package-lock.json is missing"
  now=$(cat "$folder/package.json" "$folder/package-lock.json" | sha256sum)
  [ "$(cat "$stamp" 2>/dev/null)" = "$now" ] && return
  say "installing the npm packages of $folder"
  logged "npm-${folder//\//-}" npm ci --prefix "$folder" --no-audit --no-fund
  echo "$now" >"$stamp"
}

need_python_servers() {
  local folder=.cache/python-servers stamp=.cache/python-servers/crablet-stamp wanted=() name
  for name in mcp-server-time mcp-server-git fastmcp; do wanted+=("$name==$(tool_version "$name")"); done
  if ! command -v git >/dev/null || ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    command -v apt-get >/dev/null || fail "live tests need Python 3.10 or later with venv, and git"
    say "installing Python and git with apt-get"
    apt_install python python3 python3-venv git
  fi
  [ "$(cat "$stamp" 2>/dev/null)" = "${wanted[*]}" ] && return
  say "installing ${wanted[*]} into $folder"
  logged python-venv python3 -m venv --clear "$folder"
  logged python-servers "$folder/bin/pip" install --disable-pip-version-check "${wanted[@]}"
  echo "${wanted[*]}" >"$stamp"
}

# has_program VARIABLE COMMAND...: whether the program that the variable names, or one of the commands, is there.
has_program() {
  local variable=$1 command
  shift
  if [ -n "${!variable:-}" ]; then
    [ -x "${!variable}" ] || fail "$variable=${!variable} is not a program"
    return
  fi
  for command in "$@"; do
    command -v "$command" >/dev/null && return
  done
  command -v apt-get >/dev/null || fail "none of these is on PATH: $*; install one, or name one with $variable=/path/to/it"
  return 1
}

need_chromium() {
  has_program CHROMIUM chromium chromium-browser google-chrome && return
  say "installing Chromium with apt-get"
  # Without fonts Chromium draws no text.
  apt_install chromium chromium fonts-liberation
}

need_firefox() {
  has_program FIREFOX firefox-esr firefox && return
  say "installing Firefox ESR with apt-get"
  apt_install firefox firefox-esr
}

need_nats() {
  # Packages put it where only root's PATH looks.
  has_program NATS_SERVER nats-server /usr/sbin/nats-server && return
  say "installing nats-server with apt-get"
  apt_install nats nats-server
  # Tests start servers of their own; the package would start one for the whole machine.
  if [ -d /run/systemd/system ]; then logged nats-service as_root systemctl disable --now nats-server; fi
}

for need in "$@"; do
  case $need in
    rust) need_rust ;;
    wasm)
      need_rust
      need_target wasm32-unknown-unknown
      need_rust_source
      need_cargo_tool wasm-pack wasm-pack --version
      need_cargo_tool wasm-bindgen-cli wasm-bindgen --version
      ;;
    windows) need_rust && need_windows ;;
    deny) need_rust && need_cargo_tool cargo-deny cargo-deny --version ;;
    hack) need_rust && need_cargo_tool cargo-hack cargo-hack --version ;;
    public-api) need_rust && need_cargo_tool cargo-public-api cargo-public-api --version ;;
    fuzz) need_rust && need_nightly && need_cargo_tool cargo-fuzz cargo-fuzz --version ;;
    node) need_node ;;
    npm:*) need_npm "${need#npm:}" ;;
    python-servers) need_python_servers ;;
    nats) need_nats ;;
    chromium) need_chromium ;;
    firefox) need_firefox ;;
    *) fail "unknown need '$need'" ;;
  esac
done
