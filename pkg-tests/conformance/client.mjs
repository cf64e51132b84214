// The client that the official MCP conformance suite drives, on the packed npm package: `client.mjs <server address>`.
//
// The suite names the scenario, the revision and further data in the environment. A scenario chooses only which calls are
// made; how the protocol behaves is the same for all. `make conformance` puts the package where this imports it from.
import { mcp } from "crablet";
import { authOf } from "./auth.mjs";

const address = process.argv.at(-1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const version = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? "2025-11-25";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");

const client = await mcp.connect(
  mcp.http(address, {
    auth: authOf(scenario, context),
    era: version >= "2026-07-28" ? "auto" : "handshake",
    // Says yes to every form; the defaults of its schema are filled in by the client.
    elicitation: { form: () => ({ action: "accept", content: { confirmed: true } }) },
    onEvent: (event) => console.error(JSON.stringify(event)),
  }),
);

const tools = await client.tools();
await perform();
await client.close();

/** Makes the calls of a scenario. */
async function perform() {
  switch (scenario) {
    case "tools_call":
      return call("add_numbers", { a: 5, b: 3 });
    case "sse-retry":
      return call("test_reconnection");
    case "elicitation-sep1034-client-defaults":
      return call("test_client_elicitation_defaults");
    case "http-standard-headers":
      await call("test_headers");
      await call("my-hyphenated-tool");
      for (const { uri } of await client.resources()) await client.readResource(uri);
      for (const { name } of await client.prompts()) await client.prompt(name);
      return;
    case "http-custom-headers":
      for (const planned of context.toolCalls) await call(planned.name, planned.arguments);
      return;
    case "http-invalid-tool-headers":
      for (const { name } of tools) await call(name, { region: "us" });
      return;
    case "json-schema-2020-12-preservation": {
      const { inputSchema } = tools.find(({ name }) => name === "json_schema_2020_12_tool");
      return call("json_schema_echo", { schema: inputSchema });
    }
    case "sep-2322-client-request-state":
      await Promise.all([call("test_mrtr_echo_state"), call("test_mrtr_unrelated")]);
      await call("test_mrtr_no_state");
      return call("test_mrtr_no_result_type");
    default:
      // The servers of the client that acts for itself have no tools to call.
      if (scenario.startsWith("auth/") && tools.length > 0) return call("test-tool");
  }
}

async function call(name, input) {
  const { content } = await client.callTool(name, input);
  console.error(name, JSON.stringify(content));
}
