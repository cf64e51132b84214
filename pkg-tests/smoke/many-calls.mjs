// 64 calls at once over one connection, one of them slow and one of them large.
import assert from "node:assert/strict";
import { mcp } from "crablet";

const LARGE = 8 * 1024 * 1024;

/**
 * @param {string} url of `sdk-server.mjs`
 * @returns {Promise<string>} a line about what happened
 */
export async function callMany(url) {
  const client = await mcp.connect(mcp.http(url));
  let most = 0;
  const call = async (number) => {
    const bytes = number === 1 ? LARGE : number + 1;
    const { content } = await client.callTool("produce", { bytes });
    assert.equal(content[0].text.length, bytes);
  };
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss);
  }, 5);
  const before = process.memoryUsage().rss;
  // The slow one answers only when all others have.
  const slow = client.callTool("hold");
  await Promise.all(Array.from({ length: 63 }, (_, number) => call(number)));
  await client.callTool("release");
  assert.equal((await slow).content[0].text, "released");
  const again = [];
  for (let round = 0; round < 5; round += 1) {
    await client.callTool("produce", { bytes: LARGE });
    again.push(process.memoryUsage().rss);
  }
  clearInterval(watch);
  await client.close();
  // The large answer is held a few times over on its way: as chunks, as text of the module, as text and value of JavaScript.
  assert.ok(most - before < 24 * LARGE, `${most - before} bytes more were in use`);
  assert.ok(again.at(-1) - again[0] < 16 * LARGE, `memory grows with each call: ${again}`);
  return `64 calls at once, one of 8 MiB, ${Math.round((most - before) / 1024 / 1024)} MiB more in use at most`;
}
