// The shim's HTTP front from Node through the tarball: both eras of clients before servers of both eras.
import assert from "node:assert/strict";
import { mcp } from "crablet";

/**
 * @param {{ url: string, token: string, servers: string[] }} given `url` is the shim's HTTP address, `servers` are names of
 *   servers with the tools `echo` and `progress`
 * @returns {Promise<number>} how many clients called both
 */
export async function callOverHttp({ url, token, servers }) {
  let clients = 0;
  for (const name of servers) {
    for (const era of ["stateless", "handshake", "auto"]) {
      const where = `${era} to ${name}`;
      const spoken = [];
      const onEvent = (event) => event.type === "connected" && spoken.push(event.record.era);
      const headers = { authorization: `Bearer ${token}` };
      const client = await mcp.connect(mcp.http(`${url}/mcp/${name}`, { era, headers, onEvent }), { name });
      // The front speaks both, so that a client that finds out takes the newer.
      assert.deepEqual(spoken, [era === "auto" ? "stateless" : era], where);
      const reports = [];
      const onProgress = ({ progress }) => reports.push(progress);
      assert.equal(textOf(await client.callTool("echo", { a: 1 })), '{"a":1}', where);
      assert.equal(textOf(await client.callTool("progress", {}, { onProgress })), "done", where);
      assert.deepEqual(reports, [1, 2], where);
      await client.close();
      clients += 1;
    }
  }
  const stranger = mcp.http(`${url}/mcp/${servers[0]}`, { headers: { authorization: "Bearer wrong" } });
  await assert.rejects(mcp.connect(stranger, { name: "stranger" }), /401|token|unauthori/i);
  return clients;
}

function textOf(result) {
  return result.content.map((block) => block.text).join("");
}
