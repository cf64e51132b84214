// A page and a server of another origin: what comes out of listing and calling, twice.
import { mcp } from "crablet";

/**
 * @param {string} url
 * @returns {Promise<{ texts: string[], errors: { kind: string, message: string }[], warnings: string[] }>}
 */
export async function talkTo(url) {
  const seen = { texts: [], errors: [], warnings: [] };
  const onEvent = ({ type, message }) => type === "warning" && seen.warnings.push(message);
  try {
    const client = await mcp.connect(mcp.http(url, { onEvent }));
    for (const message of ["one", "two"]) {
      try {
        const [{ name }] = await client.tools();
        const { content } = await client.callTool(name, { message });
        seen.texts.push(content[0].text);
      } catch ({ kind, message }) {
        seen.errors.push({ kind, message });
      }
    }
    await client.close();
  } catch ({ kind, message }) {
    seen.errors.push({ kind, message });
  }
  return seen;
}
