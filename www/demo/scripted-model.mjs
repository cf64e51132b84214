// The demo model's mind: no network, no randomness, no learning. It maps the words of a prompt onto the tools it is offered and
// quotes what they return.
import { fillArguments } from "./arguments.mjs";
import { meanings, nameMeanings, values } from "./words.mjs";

/** The name the demo model answers with, wherever a model's name is shown. */
export const MODEL_NAME = "scripted-demo";

/** The longest piece of a tool result that an answer quotes, in UTF-16 units: enough for a page of text. */
const MAX_QUOTE = 4_000;

/** The most numbers that "count to N" gives: long enough to abort in the middle, short enough to end. */
const MAX_COUNT = 2_000;

/** Below this score no tool is meant: at least one word of its name must be in the prompt. */
const MIN_SCORE = 2;

/** What prompts ask for; a prompt that only names a path wants it read. */
const VERBS = new Set(["read", "write", "create", "list", "search", "move", "info", "tree", "edit"]);

/** Words of tool names that no prompt needs to say. */
const GENERIC_WORDS = new Set(["get", "set", "run", "do", "tool", "mcp"]);

/**
 * Decides the next turn of the conversation.
 *
 * @param {{ messages?: any[], tools?: any[] }} request the body of an OpenAI Chat request
 * @returns {{ reasoning: string, text: string, calls: { name: string, arguments: string }[] }}
 */
export function decide(request) {
  const messages = request.messages ?? [];
  const tools = (request.tools ?? [])
    .map((tool) => tool.function ?? tool)
    .filter((tool) => typeof tool?.name === "string");
  const asked = messages.findLastIndex((message) => message.role === "user");
  const prompt = asked < 0 ? "" : textOf(messages[asked].content);
  const results = resultsAfter(messages, asked);
  if (results.length > 0) return { reasoning: "", text: answerFrom(results), calls: [] };
  const count = /\bcount (?:up )?to (\d+)/i.exec(prompt);
  if (count) {
    return { reasoning: "", text: counting(Math.min(Number(count[1]), MAX_COUNT)), calls: [] };
  }
  const calls = planCalls(prompt, tools);
  if (calls.length > 0) return { reasoning: reasonFor(calls), text: "", calls };
  return { reasoning: "", text: introduction(tools), calls: [] };
}

/** The tool calls that a prompt asks for: one for each clause that matches a tool, or one for the prompt as a whole. */
export function planCalls(prompt, tools) {
  const clauses = splitClauses(prompt);
  const split = [];
  let previousVerb = "";
  for (const clause of clauses) {
    const call =
      planCall(clause, tools) ??
      (previousVerb && values(clause).length > 0 ? planCall(`${previousVerb} ${clause}`, tools) : undefined);
    if (call) {
      split.push(call);
      previousVerb = clause.trim().split(/\s+/)[0] ?? "";
    }
  }
  const whole = planCall(prompt, tools);
  if (split.length > 1 || !whole) return split;
  return [whole];
}

function planCall(prompt, tools) {
  const wanted = new Set(meanings(prompt));
  if (![...wanted].some(isVerb)) {
    if (/\b(?:what|which) files\b/i.test(prompt)) wanted.add("list");
    else if (values(prompt).some((value) => value.kind === "path")) wanted.add("read");
  }
  let best;
  for (const tool of tools) {
    const score = scoreOf(tool, wanted);
    if (score < MIN_SCORE || (best && score <= best.score)) continue;
    const filled = fillArguments(tool.parameters, prompt);
    if (filled) best = { score, name: tool.name, arguments: JSON.stringify(filled) };
  }
  return best && { name: best.name, arguments: best.arguments };
}

/** A tool's own name: what stands before two underscores names its server. */
function ownName(name) {
  return name.slice(name.lastIndexOf("__") + 1).replace(/^_/, "");
}

/** How well a tool fits the wanted meanings: words of its name weigh most, words of its description decide between equals. */
function scoreOf(tool, wanted) {
  const name = new Set(nameMeanings(ownName(tool.name)));
  const description = new Set(meanings(tool.description ?? ""));
  let score = 0;
  for (const word of name) {
    if (wanted.has(word)) score += isVerb(word) ? 3 : 2;
    else if (!GENERIC_WORDS.has(word)) score -= 0.5;
  }
  for (const word of wanted) if (!name.has(word) && description.has(word)) score += 0.25;
  if (/\bdeprecated\b/i.test(tool.description ?? "")) score -= 2;
  return score;
}

function isVerb(word) {
  return VERBS.has(word);
}

function splitClauses(prompt) {
  return prompt
    .split(/\s*(?:,?\s+and then\s+|,?\s+then\s+|,?\s+and\s+|;\s*|,\s+)(?=(?:[^"]*"[^"]*")*[^"]*$)/i)
    .filter((clause) => clause.trim() !== "");
}

function resultsAfter(messages, asked) {
  const calls = new Map();
  const results = [];
  for (const message of messages.slice(asked + 1)) {
    for (const call of message.tool_calls ?? []) calls.set(call.id, call.function);
    if (message.role === "tool") results.push({ call: calls.get(message.tool_call_id), text: textOf(message.content) });
  }
  return results;
}

function answerFrom(results) {
  const parts = results.map(({ call, text }) => {
    const name = call ? ownName(call.name) : "a tool";
    const target = describeArguments(call?.arguments);
    const quoted = text.length > MAX_QUOTE ? `${text.slice(0, MAX_QUOTE)}\n… (${text.length - MAX_QUOTE} more)` : text;
    const fence = "`".repeat(Math.max(3, longestBackticks(quoted) + 1));
    const verb = isFailure(text) ? "failed" : "returned";
    return `**${name}**${target} ${verb}:\n\n${fence}text\n${quoted.replace(/\n$/, "")}\n${fence}`;
  });
  return results.length > 1 ? `I asked ${results.length} tools at once.\n\n${parts.join("\n\n")}` : parts.join("");
}

/** The wire has no mark for a failed tool: it is told in words. */
function isFailure(text) {
  return /^\W*(?:error|failed|the tool|the user did not|the MCP server|there is no tool)\b/i.test(text);
}

function describeArguments(text) {
  try {
    const values = Object.values(JSON.parse(text ?? "{}")).filter((value) =>
      ["string", "number"].includes(typeof value),
    );
    return values.length > 0 ? ` for ${values.map((value) => `\`${String(value).slice(0, 80)}\``).join(", ")}` : "";
  } catch {
    return "";
  }
}

function longestBackticks(text) {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
}

function counting(count) {
  return Array.from({ length: count }, (_, index) => `${index + 1}`).join(", ");
}

function reasonFor(calls) {
  const names = calls.map((call) => ownName(call.name));
  return names.length === 1
    ? `The words of the prompt match the tool ${names[0]}. I call it and wait for its result.`
    : `The prompt asks for ${names.length} things: ${names.join(" and ")}. They do not depend on each other, so I call them at once.`;
}

function introduction(tools) {
  const offered =
    tools.length > 0
      ? `I am offered ${tools.length} tools: ${tools.map((tool) => `\`${ownName(tool.name)}\``).join(", ")}.`
      : "I am offered no tools at the moment. Connect an MCP server to give me some.";
  return `I am **${MODEL_NAME}**, a scripted stand-in for a language model: I match your words to tools and quote their results.\n\n${offered}\n\nTry:\n\n- *read welcome.md*\n- *list the folder and read notes/tea.txt*\n- *count to 200*`;
}

function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .filter((part) => part?.type === "text")
    .map((part) => part.text)
    .join("\n");
}
