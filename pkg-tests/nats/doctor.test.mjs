// `crablet-shim doctor` on what a shim needs of a NATS server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "@nats-io/transport-node";
import { startNats } from "../lib/nats-server.mjs";
import { call, doctor, startNatsShim, stopping, temporaryFolder } from "./support.mjs";

const PERMITTED = `
  subscribe: ["mcp.stateless", "mcp.stateless.>", "mcp.handshake", "mcp.handshake.>", "$SRV.>", "_INBOX.>"]
  publish: ["_INBOX.>"]`;

test("a NATS server that permits what the guide names is found right, and no call is taken meanwhile", async (t) => {
  const where = await temporaryFolder(t);
  const config = `authorization { users = [
    { user: shim, password: s, permissions: { ${PERMITTED} } }, { user: caller, password: c } ] }`;
  // Without JetStream.
  const server = await stopping(t, startNats({ config, jetstream: false }));
  const access = { flags: ["--nats-user", "shim"], env: { CRABLET_NATS_PASSWORD: "s" } };
  await stopping(t, startNatsShim({ url: server.url, where, ...access }));
  const connection = await connect({ servers: server.url, user: "caller", pass: "c" });
  t.after(() => connection.close());
  let isOver = false;
  const calling = (async () => {
    for (let n = 0; !isOver; n += 1) await connection.request("mcp.stateless", call(n, "pid"), { timeout: 20_000 });
  })();
  const { isHealthy, report } = await doctor({ url: server.url, where, ...access });
  isOver = true;
  await calling;
  assert.ok(isHealthy, report);
  assert.match(report, /^ok .*NATS server .*version \d.*JetStream is not needed/m);
  assert.match(report, /^ok .*at most 1048576 bytes each \(max_payload/m);
  assert.match(report, /^ok .*permits the shim to serve stateless, handshake at mcp\.NAME/m);
  assert.match(report, /^note .*no token has been granted/m);
});

test("what is not permitted, too small, wrong or not there is told with what to do", async (t) => {
  const where = await temporaryFolder(t);
  const users = {
    nothing: 'subscribe: ["_INBOX.>"], publish: ["_INBOX.>"]',
    mute: `${PERMITTED.split("publish")[0]} publish: "x"`,
  };
  const config = `max_payload: 8192\nauthorization { users = [ ${Object.entries(users)
    .map(([user, permissions]) => `{ user: ${user}, password: p, permissions: { ${permissions} } }`)
    .join("\n")} ] }`;
  const server = await stopping(t, startNats({ config }));
  const examined = async (user, more = {}) => {
    const env = { CRABLET_NATS_PASSWORD: "p" };
    const { isHealthy, report } = await doctor({ url: server.url, where, flags: ["--nats-user", user], env, ...more });
    assert.ok(!isHealthy, report);
    return report;
  };
  const nothing = await examined("nothing");
  for (const subject of ["mcp.stateless", "mcp.stateless.stream", "mcp.handshake.session.doctor.call", "$SRV.PING"])
    assert.ok(
      nothing.split("\n").some((line) => line.startsWith("problem") && line.includes(`"${subject}`)),
      nothing,
    );
  assert.match(nothing, /docs\/nats\.md has the permissions/);
  assert.match(nothing, /^note .*8192 bytes are little/m);
  assert.match(await examined("mute"), /^problem .*Publish to \\?"_INBOX\./m);
  const wrong = await examined("nothing", { env: { CRABLET_NATS_PASSWORD: "wrong" } });
  assert.match(wrong, /^problem .*no connection to the NATS server.*authorization.*do the credentials/im);
  const nobody = await examined("nothing", { url: "nats://127.0.0.1:1" });
  assert.match(nobody, /^problem .*no connection to the NATS server.*is it running there/m);
  const unknown = await doctor({ url: server.url, where, flags: ["--nats-server", "other"] });
  assert.match(unknown.report, /^problem .*"other".*has: handshake, stateless/m);
});
