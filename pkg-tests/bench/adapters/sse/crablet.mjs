import { readServerSentEvents } from "crablet";

export async function parse(body) {
  let count = 0;
  for await (const _ of readServerSentEvents(body)) count += 1;
  return count;
}
