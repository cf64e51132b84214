// A loop over the body, `eventsource-parser` and nothing else.
import { createParser } from "eventsource-parser";

export async function parse(body) {
  let count = 0;
  const decoder = new TextDecoder();
  const parser = createParser({ onEvent: () => count++ });
  for await (const bytes of body) parser.feed(decoder.decode(bytes, { stream: true }));
  return count;
}
