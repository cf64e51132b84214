// Bytes of an event stream in, events out; no network. An adapter exports `parse(body)`, which takes a stream of bytes and
// gives the number of events.
export const floor = "raw";
export const unit = "event";

const encoder = new TextEncoder();
let prepared;

export function cases({ isQuick }) {
  const size = isQuick ? 2 ** 16 : 2 ** 23;
  return [
    { title: "SSE, events of 200 B in pieces of 64 KiB", parameters: { piece: 65_536, size: size * 2 } },
    { title: "SSE, one event of 200 B a piece", parameters: { piece: "event", size } },
    { title: "SSE, pieces of 7 B", parameters: { piece: 7, size: size / 8 } },
  ];
}

export async function prepare(_adapter, { piece, size }) {
  const events = [];
  for (let bytes = 0; bytes < size; bytes += events.at(-1).length) {
    const delta = { content: ` word${events.length % 1000}` };
    const choice = { index: 0, delta, logprobs: null, finish_reason: null };
    const head = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_700_000_000, model: "gpt-bench" };
    events.push(`data: ${JSON.stringify({ ...head, choices: [choice] })}\n\n`);
  }
  const all = encoder.encode(events.join(""));
  const pieces = piece === "event" ? events.map((event) => encoder.encode(event)) : cut(all, piece);
  prepared = { pieces, count: events.length };
}

export async function run({ parse }) {
  const { pieces, count } = prepared;
  let at = 0;
  const body = new ReadableStream(
    {
      pull(controller) {
        if (at === pieces.length) controller.close();
        else controller.enqueue(pieces[at++]);
      },
    },
    { highWaterMark: 0 },
  );
  const seen = await parse(body);
  if (seen !== count) throw new Error(`${seen} events of ${count}`);
  return { count };
}

function cut(bytes, size) {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}
