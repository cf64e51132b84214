// Tool calls over Streamable HTTP. An adapter exports `connect(url)`, which gives `{ call(size), close() }`; `call` gives the
// length of the text that the tool `echo` answers with.
export const floor = "raw";
export const unit = "call";

const WORK = { "small, one at a time": [100, 200, 1], "small, 64 at once": [100, 640, 64], "1 MiB": [2 ** 20, 12, 1] };
let connection;

export function cases({ port, isQuick }) {
  return ["json", "sse"].flatMap((reply) =>
    Object.entries(WORK).map(([title, [size, count, atOnce]]) => ({
      title: `MCP, ${reply.toUpperCase()}, ${title}`,
      parameters: { url: `http://127.0.0.1:${port}/${reply}`, size, count: isQuick ? atOnce : count, atOnce },
    })),
  );
}

export async function prepare({ connect }, { url }) {
  await connection?.close();
  connection = await connect(url);
}

export async function run(_adapter, { size, count, atOnce }) {
  let left = count;
  const caller = async () => {
    while (left > 0) {
      left -= 1;
      const length = await connection.call(size);
      if (length !== size) throw new Error(`a text of ${length} instead of ${size}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, caller));
  return { count };
}
