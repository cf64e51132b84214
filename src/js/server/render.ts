// What is sent, in the words of each revision.
import { toBase64 } from "../base64.js";
import { invalidInput } from "../error.js";
import { outputOf } from "../tool.js";
import type { PromptMessage, ResourceContent, ServerPrompt, ServerResource, ServerTool } from "./catalog.js";
import { schemaFaults } from "./check-schema.js";
import { type Fields, fields, STATELESS } from "./protocol.js";

/** A tool of a list. */
export function renderTool(name: string, tool: ServerTool, version: string): Fields {
  return {
    name,
    ...(version >= "2025-06-18" && tool.title !== undefined && { title: tool.title }),
    description: tool.description,
    inputSchema: { type: "object", ...tool.schema.jsonSchema },
    ...(tool.outputSchema !== undefined &&
      takesValue(version, tool.outputSchema) && { outputSchema: tool.outputSchema }),
    ...(version >= "2025-03-26" && tool.annotations !== undefined && { annotations: tool.annotations }),
  };
}

/** Whether a revision has structured results of this schema: from 2025-06-18 on objects, from 2026-07-28 on any value. */
function takesValue(version: string, schema: Fields): boolean {
  return version === STATELESS || (version >= "2025-06-18" && schema.type === "object");
}

/** A resource of a list, under its address, or a family of them under a template. */
export function renderResource(uri: string, resource: ServerResource, version: string): Fields {
  const { name, title, description, mimeType } = resource;
  return {
    [uri.includes("{") ? "uriTemplate" : "uri"]: uri,
    name,
    ...(version >= "2025-06-18" && title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(mimeType !== undefined && { mimeType }),
  };
}

export function renderPrompt(name: string, prompt: ServerPrompt, version: string): Fields {
  const { title, description } = prompt;
  return {
    name,
    ...(version >= "2025-06-18" && title !== undefined && { title }),
    ...(description !== undefined && { description }),
    arguments: Object.entries(prompt.arguments ?? {}).map(([argument, { description: about, required = false }]) => ({
      name: argument,
      ...(about !== undefined && { description: about }),
      required,
    })),
  };
}

/** What a tool returned, as a result; one that is not what its schema promises is a failed one. */
export function toolResult(name: string, tool: ServerTool, returned: unknown, version: string): Fields {
  const {
    content,
    output,
    isError = false,
  } = outputOf(returned) as {
    content?: readonly Fields[];
    output?: unknown;
    isError?: boolean;
  };
  if (tool.outputSchema !== undefined && !isError) {
    const faults = schemaFaults(tool.outputSchema, output);
    if (faults.length > 0) return failedTool(`the result of ${name} is not what it promised: ${faults.join("; ")}`);
  }
  const value = content === undefined ? JSON.stringify(output) : "";
  if (value === undefined || (content !== undefined && !Array.isArray(content)))
    throw invalidInput(`${name} returned nothing that JSON can hold, or a result without content`);
  const hasValue = output !== undefined && typeof output !== "string";
  const isKnown = version === STATELESS || (version >= "2025-06-18" && fields(output) !== undefined);
  return {
    // For clients that do not know structured results.
    content: (content ?? [{ type: "text", text: value }]).map((part) => block(part, version)),
    ...(hasValue && isKnown && { structuredContent: output }),
    isError,
  };
}

/** A failure as a result that a model reads. */
export function failedTool(reason: string): Fields {
  return { content: [{ type: "text", text: reason }], isError: true };
}

/** A part of a tool's content as a block of the protocol. */
function block(part: Fields, version: string): Fields {
  const { type, text, mediaType, data, url, name } = part;
  if (type === "text" && typeof text === "string") return { type: "text", text };
  if (type === "resource") return part;
  if (type === "resource_link") return version >= "2025-06-18" ? part : { type: "text", text: part.uri };
  const mimeType = String(mediaType ?? part.mimeType ?? "application/octet-stream");
  if (typeof url === "string")
    return version >= "2025-06-18"
      ? { type: "resource_link", uri: url, name: name ?? url, mimeType }
      : { type: "text", text: url };
  const blob = data instanceof Uint8Array ? toBase64(data) : data;
  if (typeof blob !== "string")
    throw invalidInput(
      `the result has content of the type ${JSON.stringify(type)} that is no text, and has no data and no url`,
    );
  if (mimeType.startsWith("image/")) return { type: "image", data: blob, mimeType };
  if (mimeType.startsWith("audio/") && version >= "2025-03-26") return { type: "audio", data: blob, mimeType };
  return { type: "resource", resource: { uri: `file:///${name ?? "result"}`, mimeType, blob } };
}

export function resourceContents(
  uri: string,
  { mimeType }: ServerResource,
  content: ResourceContent,
): readonly Fields[] {
  const kind = mimeType === undefined ? {} : { mimeType };
  if (typeof content === "string") return [{ uri, ...kind, text: content }];
  if (content instanceof Uint8Array) return [{ uri, ...kind, blob: toBase64(content) }];
  return content as readonly Fields[];
}

export function promptMessages(given: string | readonly PromptMessage[]): readonly Fields[] {
  if (typeof given !== "string") return given as unknown as readonly Fields[];
  return [{ role: "user", content: { type: "text", text: given } }];
}
