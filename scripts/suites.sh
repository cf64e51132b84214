#!/usr/bin/env bash
# Runs the suites of one or more tiers: `scripts/suites.sh TIER...` with the tiers `test` and `further`.
#
# Prints a line per suite, `ok NAME (seconds)` or `FAILED NAME (seconds)`, goes on after a failure, and ends with
# `N passed, N failed`. A suite whose needs could not be set up has failed. With CRABLET_SUITE_RESULTS=FILE the lines are
# also added to FILE.
source "$(dirname "$0")/env.sh"

# tier | name | needs, as for setup.sh | command
suites() {
  cat <<'SUITES'
test    | rust       | rust node                                                    | cargo test --workspace --features crablet/tools,crablet/mcp-server
test    | purity     | rust                                                         | scripts/purity.sh
test    | package    | rust wasm npm:src/js                                         | node scripts/package.mjs
test    | tarball    | rust npm:pkg-tests npm:www npm:www/demo chromium             | node pkg-tests/run.mjs manifest types node readme shim workerd browser secrets files durable bundler cors oauth native-messaging
test    | demo       | rust wasm npm:src/js npm:www npm:www/demo chromium           | node www/demo/demo-check.mjs
test    | page       | npm:www                                                      | npm --prefix www run check && npm --prefix www test
further | lint       | rust wasm windows deny hack npm:.                            | scripts/lint.sh
further | audit      | node rust deny                                               | node --test scripts/audit.test.mjs && node scripts/audit.mjs
further | docs       | rust npm:src/js npm:docs/reference                           | node scripts/reference.mjs && node scripts/site.mjs
further | golden     | npm:pkg-tests npm:www/demo chromium                          | node pkg-tests/run.mjs golden
further | api        | rust wasm public-api npm:docs/reference                      | node scripts/api.mjs
further | cases      | npm:pkg-tests                                                | node scripts/cases-package.mjs
further | recorded   | rust npm:pkg-tests                                           | node scripts/recorded.mjs
further | conformance | rust npm:pkg-tests/conformance                            | node scripts/conformance.mjs
further | size       | rust wasm npm:src/js                                         | node scripts/one-provider.mjs && node scripts/size.mjs --check
further | runtimes   | npm:pkg-tests npm:pkg-tests/runtimes npm:www/demo             | node pkg-tests/run.mjs runtimes
further | bundlers   | npm:pkg-tests npm:pkg-tests/bundlers npm:www/demo chromium    | node pkg-tests/run.mjs bundlers
further | browser-cases | npm:pkg-tests npm:www/demo chromium                       | node pkg-tests/run.mjs browser-cases
further | firefox    | npm:pkg-tests npm:pkg-tests/runtimes npm:www/demo firefox     | node pkg-tests/run.mjs firefox
further | firefox-page | rust wasm npm:src/js npm:www npm:www/demo npm:pkg-tests/runtimes firefox | node www/demo/firefox-check.mjs
further | shim-binary | rust                                                        | scripts/shim-binary.sh
further | live       | rust npm:pkg-tests npm:pkg-tests/servers npm:www/demo python-servers chromium | node pkg-tests/run.mjs live
further | expose     | rust npm:pkg-tests npm:pkg-tests/servers npm:www/demo python-servers chromium | node pkg-tests/run.mjs expose
further | interop    | npm:pkg-tests npm:pkg-tests/interop npm:www/demo chromium    | node pkg-tests/run.mjs interop
further | examples   | rust wasm npm:pkg-tests npm:pkg-tests/runtimes npm:www npm:www/demo npm:www/extension npm:www/worker npm:www/react chromium | node pkg-tests/run.mjs example-extension example-worker fleet example-react example-programs hand-over quick-start
further | clients    | rust npm:pkg-tests/servers python-servers                    | cargo build --example mcp_server --features tools,mcp-server && cargo build --package crablet-shim && node pkg-tests/servers/official-clients.mjs target/debug/examples/mcp_server target/debug/crablet-shim .cache/python-servers/bin/python
further | scale      | rust nats npm:pkg-tests npm:pkg-tests/nats npm:www/demo chromium | scripts/scale.sh
further | faults     | rust wasm npm:src/js npm:pkg-tests                           | scripts/faults.sh
further | bench      | rust npm:pkg-tests npm:pkg-tests/bench npm:www/demo chromium  | node pkg-tests/bench/run.mjs --quick && node pkg-tests/bench/shim.mjs --quick
further | soak       | rust npm:pkg-tests npm:www/demo chromium                     | node pkg-tests/soak/run.mjs --quick --minutes 1.5
further | live-rust  | rust npm:pkg-tests/servers python-servers                    | cargo test --test mcp_live -- --ignored
SUITES
}

# The longest a suite may take. The slowest, `rust` from nothing, takes a few minutes.
limit_seconds=1500
lines_shown=100

passed=0
failed=0

run_suite() {
  local name=$1 needs=$2 command=$3 log=$logs/$1.log started=$SECONDS verdict
  echo "-- $name: $command"
  # A need is one word, so the list splits into arguments.
  # shellcheck disable=SC2086
  if scripts/setup.sh $needs && timeout --kill-after=20 "$limit_seconds" bash -c "$command" >"$log" 2>&1 </dev/null; then
    passed=$((passed + 1))
    verdict=ok
  else
    failed=$((failed + 1))
    verdict=FAILED
    [ -f "$log" ] && tail -n "$lines_shown" "$log"
  fi
  report "$verdict $name ($((SECONDS - started)) s)"
}

report() {
  echo "$1"
  [ -z "${CRABLET_SUITE_RESULTS:-}" ] || echo "$1" >>"$CRABLET_SUITE_RESULTS"
}

[ $# -gt 0 ] || fail "usage: scripts/suites.sh TIER..."
while IFS='|' read -r tier name needs command; do
  tier=${tier// /} name=${name// /}
  for wanted in "$@"; do
    if [ "$wanted" = "$tier" ]; then
      rm -f "$logs/$name.log"
      run_suite "$name" "$needs" "${command# }"
    fi
  done
done < <(suites)

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
