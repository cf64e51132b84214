// A page that calls MCP servers over NATS's WebSocket, with the packed package and the official client.
import { wsconnect } from "@nats-io/nats-core";
import { mcp } from "crablet";
import { nats } from "crablet/nats";

/** Calls each server: alone, and in a session where it has such; a line for each. */
window.callOverNats = async (servers) => {
  const connection = await wsconnect({ servers });
  const lines = [];
  for (const [server, era] of [
    ["stateless", "auto"],
    ["handshake", "auto"],
    ["handshake", "handshake"],
  ]) {
    const client = await mcp.connect(nats({ connection, server, era }));
    const tools = await client.tools();
    const progress = [];
    let released;
    const onProgress = (report) => {
      progress.push(report.progress);
      // The call ends because of this one.
      if (report.progress === 2) released = client.callTool("go", {});
    };
    const { content } = await client.callTool("progress", {}, { onProgress });
    await released;
    lines.push(`${server}, ${era}: ${tools.length} tools, progress ${progress}, ${content[0].text}`);
    await client.close();
  }
  await connection.close();
  return lines;
};
