// A streamed answer of many deltas, over HTTP, read to its end. An adapter exports `create({ api, baseUrl, apiKey })`, which
// gives a function that asks once and gives the length of the text, in UTF-16 units.
export const floor = "raw";
export const unit = "delta";

const APIS = ["openai", "anthropic"];
let ask;

export function cases({ port, isQuick }) {
  const count = isQuick ? 200 : 20_000;
  return ["packed", "events"].flatMap((mode) =>
    APIS.map((api) => ({
      title: `${api}, ${mode === "packed" ? "packed" : "one event a piece"}`,
      needs: api,
      parameters: { api, count, baseUrl: `http://127.0.0.1:${port}/${api}`, apiKey: `bench.${mode}.${count}.x` },
    })),
  );
}

export async function prepare({ create }, parameters) {
  ask = await create(parameters);
}

export async function run(_adapter, { count }) {
  const expected = Array.from({ length: count }, (_, number) => ` word${number % 1000}`.length).reduce((a, b) => a + b);
  const length = await ask();
  if (length !== expected) throw new Error(`a text of ${length} instead of ${expected}`);
  return { count };
}
