import type { ModelChunk, ModelRequest } from "../model.js";
import type { JsonSchema } from "../schema.js";

/**
 * How a model without calls of its own is asked for them: it writes one JSON object, which is an answer or calls.
 */
export interface Structure {
  readonly schema: JsonSchema;
  /** What the model is told of it, after its instructions. */
  readonly instructions: string;
}

/** The structure of an answer to this request; `undefined` where plain text will do. */
export function structureOf({ tools, output }: ModelRequest): Structure | undefined {
  if (tools.length === 0)
    return output === undefined
      ? undefined
      : { schema: output.jsonSchema, instructions: "Answer with one JSON object." };
  const answer = output?.jsonSchema ?? { type: "string" };
  const calls = tools.map(({ name, inputSchema }) =>
    object({ tool: { type: "string", enum: [name] }, input: inputSchema }),
  );
  const several = { type: "array", minItems: 1, items: calls.length === 1 ? calls[0] : { anyOf: calls } };
  const described = tools.map(
    ({ name, description, inputSchema }) => `- ${name}: ${description} Its input: ${JSON.stringify(inputSchema)}`,
  );
  const instructions = [
    "Write one JSON object and nothing else. To use tools:",
    '{"calls":[{"tool":"NAME","input":{…}}]}',
    "Their results come with the next message. To answer, when you need no tool any more:",
    output === undefined ? '{"answer":"TEXT"}' : `{"answer":…} with an answer of the schema ${JSON.stringify(answer)}`,
    "The tools:",
    ...described,
  ].join("\n");
  return { schema: { anyOf: [object({ answer }), object({ calls: several })] }, instructions };
}

function object(properties: Readonly<Record<string, unknown>>): JsonSchema {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

/** Reads such an object while it is written. The text of an answer is told as it comes. */
export class StructureReader {
  #text = "";
  /** Where the answer's text goes on that was not told yet; -1 when the answer is no text, `undefined` while that is open. */
  #position: number | undefined;
  /** UTF-16 units of the answer that were told. */
  #told = 0;

  /** The text that is new. */
  push(text: string): string {
    this.#text += text;
    this.#position ??= startOf(this.#text);
    if (this.#position === undefined || this.#position < 0) return "";
    const written = wholeText(this.#text.slice(this.#position));
    this.#position += written.length;
    const delta = JSON.parse(`"${escapeControls(written)}"`) as string;
    this.#told += delta.length;
    return delta;
  }

  /** What is left to tell when the object is whole. */
  end(): ModelChunk[] {
    let value: { readonly answer?: unknown; readonly calls?: unknown };
    try {
      value = (JSON.parse(this.#text) ?? {}) as typeof value;
    } catch {
      // It did not keep to the form: what it wrote is its answer, unless some of that was told already.
      return this.#told > 0 ? [] : [this.#text];
    }
    if (Array.isArray(value.calls))
      return value.calls.map((call: { readonly tool?: unknown; readonly input?: unknown }) => ({
        type: "tool-call",
        toolName: String(call?.tool),
        input: call?.input ?? {},
      }));
    if (typeof value.answer === "string") return [value.answer.slice(this.#told)];
    return value.answer === undefined ? [this.#text] : [JSON.stringify(value.answer)];
  }
}

/** Where the text of `{"answer":"…` begins; -1 when the object is another, `undefined` while that is open. */
function startOf(text: string): number | undefined {
  const begun = /^\s*\{\s*"answer"\s*:\s*"/.exec(text);
  if (begun !== null) return begun[0].length;
  // Another first letter of the name or of the value, or no object at all.
  return /^\s*([^{\s]|\{\s*([^"\s]|"(?!a?n?s?w?e?r?$|answer")|"answer"\s*([^:\s]|:\s*[^"\s])))/.test(text)
    ? -1
    : undefined;
}

/** What of a JSON string can be read already: no half of an escape or of a pair of surrogates, which the other half follows. */
function wholeText(written: string): string {
  const text = /^(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*/.exec(written)?.[0] ?? "";
  return text.replace(/(\\u[dD][89abAB][0-9a-fA-F]{2}|[\ud800-\udbff])$/, "");
}

/** Escapes the control characters that a model did not escape. */
function escapeControls(text: string): string {
  return [...text].map((character) => (character < " " ? JSON.stringify(character).slice(1, -1) : character)).join("");
}
