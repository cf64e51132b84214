// With the JSON.parse that belongs to it.
import { parseJsonEventStream } from "@ai-sdk/provider-utils";
import { z } from "zod";

export async function parse(body) {
  let count = 0;
  for await (const part of parseJsonEventStream({ stream: body, schema: z.any() })) {
    if (!part.success) throw part.error;
    count += 1;
  }
  return count;
}
