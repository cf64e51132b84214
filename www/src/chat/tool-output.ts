// A tool's output as text: MCP content blocks read out, everything else as JSON.

/** The longest text shown, in UTF-16 units: more than anybody reads in a card, less than what makes a page slow. */
const MAX_TEXT = 20_000;

/** The longest preview on one line: wider than any line of the page. */
const MAX_PREVIEW = 200;

/** What a person reads of an output. */
export function describeOutput(output: unknown): string {
  const text = describe(output);
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}\n… (${text.length - MAX_TEXT} more)` : text;
}

/** A text brought to one line, for a preview. */
export function oneLine(text: string): string {
  return text
    .slice(0, MAX_PREVIEW * 2)
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, MAX_PREVIEW);
}

function describe(output: unknown): string {
  if (typeof output === "string") return output;
  const blocks = contentOf(output);
  if (blocks) return blocks.map(describeBlock).join("\n");
  return JSON.stringify(output, undefined, 2) ?? "";
}

function contentOf(output: unknown): readonly unknown[] | undefined {
  if (
    Array.isArray(output) &&
    output.length > 0 &&
    output.every((block) => isObject(block) && typeof block.type === "string")
  )
    return output;
  return isObject(output) && Array.isArray(output.content) ? output.content : undefined;
}

function describeBlock(block: unknown): string {
  if (!isObject(block)) return JSON.stringify(block);
  if (block.type === "text" && typeof block.text === "string") return block.text;
  const mediaType = block.mimeType ?? block.mediaType;
  return typeof mediaType === "string" ? `[${String(block.type)}: ${mediaType}]` : JSON.stringify(block, undefined, 2);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
