// `tools/list` and `tools/call` against the official MCP test server over Streamable HTTP, from Node and from a page.
import { startEverything } from "../../www/demo/everything.mjs";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { withPage } from "../lib/browser.mjs";
import { run } from "../lib/process.mjs";
import { expectedEcho } from "../smoke/expected.mjs";
import { servePage } from "./bundler.mjs";

export default async function live(project) {
  const everything = await startEverything();
  const model = await startModelServer({ delay: 0 });
  const page = await servePage(project);
  const urls = { modelUrl: model.url, mcpUrl: everything.url };
  try {
    const script = `import { echoThroughMcp } from "./pkg-tests/smoke/mcp.mjs"; console.log(await echoThroughMcp(${JSON.stringify(urls)}));`;
    const fromNode = await run(process.execPath, ["--input-type=module", "--eval", script], {
      cwd: project.folder,
      timeout: 30_000,
    });
    expect("Node", fromNode.trim());
    const fromPage = await withPage(async (tab) => {
      await tab.goto(page.url);
      return tab.evaluate((given) => window.echoThroughMcp(given), urls);
    });
    expect("a page", fromPage);
  } finally {
    await page.stop();
    await model.close();
    await everything.stop();
  }
  return "server-everything from Node and from a page in Chromium";
}

function expect(where, seen) {
  if (seen !== expectedEcho) throw new Error(`from ${where}: ${seen}`);
}
