import { _iterSSEMessages } from "openai/core/streaming";

export async function parse(body) {
  let count = 0;
  for await (const _ of _iterSSEMessages(new Response(body), new AbortController())) count += 1;
  return count;
}
