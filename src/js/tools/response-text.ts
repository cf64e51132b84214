import { toolOutput, type ToolOutput } from "../tool.js";
import type { LimitedResponse } from "./limited-fetch.js";

/** An answer as a model reads it: the status, the type, and the body where it is text. */
export function responseOutput(response: LimitedResponse): ToolOutput {
  const { status, contentType, body, isCut, url } = response;
  const head = `HTTP ${status}${contentType === "" ? "" : `, ${contentType}`}`;
  const cut = isCut ? `\n[cut after ${body.length} bytes]` : "";
  return toolOutput({
    content: `${head}\n\n${bodyText(response)}${cut}`,
    // Not the query: a supplier may have put a key there.
    details: { status, contentType, url: url.origin + url.pathname, bytes: body.length, isCut },
    isError: status >= 400,
  });
}

function bodyText({ body, contentType, isCut }: LimitedResponse): string {
  if (body.length === 0) return "[no body]";
  const charset = /charset\s*=\s*"?([\w-]+)/i.exec(contentType)?.[1];
  if (body.subarray(0, 8_192).includes(0) && !/^utf-?16/i.test(charset ?? ""))
    return `[${body.length} bytes that are no text]`;
  const decoder = decoderOf(charset);
  // A character that the limit cut in two is left out.
  return decoder.decode(body, { stream: isCut });
}

function decoderOf(charset: string | undefined): TextDecoder {
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
}
