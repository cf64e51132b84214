// The server that the official conformance suite looks at, of the npm package over HTTP in Node: the tools, resources and prompts
// that its scenarios name, as examples/conformance_server.rs has them. Prints its address.
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import {
  ask,
  contentBlocks as blocks,
  httpHandler,
  McpServer,
  needsInput,
  nodeListener,
  refusal,
  serverTool,
} from "crablet/server";

/** One red pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/** Silence. */
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
/** A state that nobody else can make. */
const CONFIRMING = `confirming.${randomBytes(8).toString("hex")}`;

const nameField = { name: { type: "string" } };
const confirmation = { ok: { type: "boolean" } };

const tools = {
  test_simple_text: plain(() => "This is a simple text response for testing."),
  test_image_content: plain(() => blocks([image()])),
  test_audio_content: plain(() => blocks([{ type: "audio", data: WAV, mimeType: "audio/wav" }])),
  test_embedded_resource: plain(() =>
    blocks([embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]),
  ),
  test_multiple_content_types: plain(() =>
    blocks([
      text("Multiple content types test:"),
      image(),
      embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ]),
  ),
  test_error_handling: plain(() => {
    throw new Error("This tool intentionally returns an error for testing");
  }),
  test_tool_with_logging: plain(logging),
  test_logging_tool: plain(logging),
  test_tool_with_progress: plain(async (_, context) => {
    for (const progress of [0, 50, 100]) {
      context.progress({ progress, total: 100 });
      await sleep(50);
    }
    return "Progress was reported.";
  }),
  test_custom_header: taking(
    { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
    () => "The header and the argument say the same.",
  ),
  json_schema_2020_12_tool: taking(schema202012(), (input) => JSON.stringify(input)),
  test_sampling: taking(texts("prompt"), ({ prompt }, context) =>
    asking(context, "answer", sample(prompt, 100), (answer) => `LLM response: ${said(answer)}`),
  ),
  test_elicitation: taking(texts("message"), ({ message }, context) => {
    const fields = {
      username: { type: "string", description: "User's response" },
      email: { type: "string", description: "User's email address" },
    };
    return asking(
      context,
      "answer",
      ask.form(message, form(fields)),
      (answer) => `User response: ${JSON.stringify(answer)}`,
    );
  }),
  test_elicitation_sep1034_defaults: plain((_, context) => askForm(context, defaults())),
  test_elicitation_sep1330_enums: plain((_, context) => askForm(context, enumerations())),
  test_streaming_elicitation: plain((_, context) => askForm(context, nameField)),
  test_missing_capability: plain((_, context) => asking(context, "answer", sample("Anything", 10), said)),
  test_input_required_result_elicitation: plain((_, context) =>
    asking(context, "user_name", askName(), (answer) => `Hello, ${field(answer, "name")}!`),
  ),
  test_input_required_result_sampling: plain((_, context) =>
    asking(context, "capital_question", sample("What is the capital of France?", 100), said),
  ),
  test_input_required_result_list_roots: plain((_, context) =>
    asking(context, "client_roots", ask.roots(), JSON.stringify),
  ),
  test_input_required_result_capabilities: plain((_, context) => {
    const requests = Object.entries({ user_name: askName(), greeting: greeting() });
    const possible = requests.filter(([, request]) => context.canAsk(request));
    return askingAll(context, Object.fromEntries(possible), undefined, () => "All questions were answered.");
  }),
  test_input_required_result_multiple_inputs: plain((_, context) => {
    const requests = { user_name: askName(), greeting: greeting(), client_roots: ask.roots() };
    return askingAll(context, requests, "asked", () => "All questions were answered.");
  }),
  test_input_required_result_request_state: plain((_, context) => {
    refuseUnless([undefined, "confirming"].includes(context.requestState), "the requestState is not of this tool");
    const request = ask.form("Please confirm", form(confirmation));
    return askingAll(context, { confirm: request }, "confirming", () => "state-ok");
  }),
  test_input_required_result_tampered_state: plain((_, context) => {
    refuseUnless([undefined, CONFIRMING].includes(context.requestState), "the requestState was changed on its way");
    const request = ask.form("Please confirm", form(confirmation));
    return askingAll(context, { confirm: request }, CONFIRMING, () => "The state is whole.");
  }),
  test_input_required_result_multi_round: plain((_, context) => {
    const step2 = ask.form("Step 2: What is your favorite color?", form({ color: { type: "string" } }));
    if (context.requestState === "round-2")
      return askingAll(context, { step2 }, "round-2", () => "Both steps are done.");
    if (context.requestState === "round-1" && answers(context, { step1: step2 }) !== undefined)
      return needsInput({ step2 }, "round-2");
    return needsInput({ step1: ask.form("Step 1: What is your name?", form(nameField)) }, "round-1");
  }),
  test_trigger_tool_change: plain(() => {
    server.update({ tools: { ...tools, test_extra: plain(() => "Here I am.") } });
    server.update({ tools });
    return "Changed, and changed back.";
  }),
  test_trigger_prompt_change: plain(() => {
    server.update({ prompts: { ...prompts, test_extra: { get: () => "Here I am." } } });
    server.update({ prompts });
    return "Changed, and changed back.";
  }),
};

const resources = {
  "test://static-text": {
    name: "static-text",
    mimeType: "text/plain",
    read: () => "This is the content of the static text resource.",
  },
  "test://static-binary": { name: "static-binary", mimeType: "image/png", read: () => Buffer.from(PNG, "base64") },
  "test://watched-resource": { name: "watched-resource", mimeType: "text/plain", read: () => "It never changes." },
  "test://template/{id}/data": {
    name: "template",
    mimeType: "application/json",
    read: (_, { id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  },
};

const required = { required: true };
const prompts = described({
  test_simple_prompt: { get: () => "This is a simple prompt for testing." },
  test_prompt_with_arguments: {
    arguments: { arg1: required, arg2: required },
    get: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  },
  test_prompt_with_embedded_resource: {
    arguments: { resourceUri: required },
    get: ({ resourceUri }) =>
      messages([
        embedded(resourceUri, "text/plain", "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
      ]),
  },
  test_prompt_with_image: { get: () => messages([image(), text("Please analyze the image above.")]) },
  test_input_required_result_prompt: {
    get: (_, context) => {
      const request = ask.form("What context should the prompt use?", form({ context: { type: "string" } }));
      return asking(context, "user_context", request, (answer) => `The context is ${field(answer, "context")}.`);
    },
  },
});

const server = new McpServer({
  name: "conformance",
  version: "1.0.0",
  logging: true,
  tools,
  resources,
  prompts,
  complete: ({ value }) => ["paris", "park", "party"].filter((known) => known.startsWith(value)),
});

const listening = createServer(nodeListener(httpHandler(server)));
listening.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listening.address().port}/mcp`));

async function logging(_, context) {
  for (const message of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
    context.log("info", message);
    await sleep(50);
  }
  return "Three messages were logged.";
}

/** Asks once, and ends with what was answered. */
function asking(context, key, request, end) {
  return askingAll(context, { [key]: request }, undefined, ([answer]) => end(answer));
}

function askForm(context, properties) {
  const request = ask.form("Please fill in the form", form(properties));
  return asking(
    context,
    "form",
    request,
    ({ action = "", content }) => `Elicitation completed: action=${action}, content=${JSON.stringify(content ?? null)}`,
  );
}

/** Asks until everything is answered with an object. */
function askingAll(context, requests, state, end) {
  const given = answers(context, requests);
  return given === undefined ? needsInput(requests, state) : end(given);
}

function answers({ inputResponses }, requests) {
  const given = Object.keys(requests).map((key) => inputResponses[key]);
  return given.every((answer) => typeof answer === "object" && answer !== null && !Array.isArray(answer))
    ? given
    : undefined;
}

function refuseUnless(isFine, why) {
  if (!isFine) throw refusal(why);
}

function askName() {
  return ask.form("What is your name?", form(nameField));
}

function greeting() {
  return sample("Generate a greeting", 50);
}

function sample(prompt, maxTokens) {
  return ask.model({ messages: [{ role: "user", content: { type: "text", text: prompt } }], maxTokens });
}

/** The text of a sampled message. */
function said(answer) {
  return answer.content?.text ?? "nothing";
}

/** A field of a form. */
function field(answer, name) {
  return answer.content?.[name] ?? "whoever you are";
}

function form(properties) {
  return { type: "object", properties, required: Object.keys(properties) };
}

function defaults() {
  return {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  };
}

function enumerations() {
  const titled = (...titles) => titles.map((title, at) => ({ const: `value${at + 1}`, title }));
  return {
    untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
    titledSingle: { type: "string", oneOf: titled("First Option", "Second Option", "Third Option") },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
    titledMulti: { type: "array", items: { anyOf: titled("First Choice", "Second Choice", "Third Choice") } },
  };
}

/** A schema that has the words which came with revision 2020-12 of JSON Schema. */
function schema202012() {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: {
      address: {
        $anchor: "addressDef",
        type: "object",
        properties: { street: { type: "string" }, city: { type: "string" } },
      },
    },
    properties: {
      name: { type: "string" },
      address: { $ref: "#/$defs/address" },
      contactMethod: { type: "string", enum: ["phone", "email"] },
      phone: { type: "string" },
      email: { type: "string" },
    },
    allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
    if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
    then: { required: ["phone"] },
    else: { required: ["email"] },
    additionalProperties: false,
  };
}

function described(prompts) {
  const description = "For the scenarios of the conformance suite that name it";
  return Object.fromEntries(Object.entries(prompts).map(([name, prompt]) => [name, { description, ...prompt }]));
}

function plain(execute) {
  return taking({ type: "object" }, execute);
}

function taking(input, execute) {
  return serverTool({ description: "For the scenarios of the conformance suite that name it", input, execute });
}

function texts(name) {
  return { type: "object", properties: { [name]: { type: "string" } }, required: [name] };
}

function text(value) {
  return { type: "text", text: value };
}

function image() {
  return { type: "image", data: PNG, mimeType: "image/png" };
}

function embedded(uri, mimeType, value) {
  return { type: "resource", resource: { uri, mimeType, text: value } };
}

function messages(contents) {
  return contents.map((content) => ({ role: "user", content }));
}
