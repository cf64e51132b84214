// A conversation of so many turns, each an answer that calls a tool four times, and a text at the end. An adapter exports
// `create({ baseUrl })`, which gives a function `({ apiKey, turns, tool })`, where `tool()` is what the tool does.
export const floor = "raw";
export const unit = "turn";

let converse;
let session = 0;

export function cases({ port, isQuick }) {
  const of = (turns, more) => ({
    title: `agent, ${turns} turns of 4 calls`,
    parameters: { turns, baseUrl: `http://127.0.0.1:${port}/openai` },
    ...more,
  });
  return isQuick ? [of(3)] : [of(10), of(50), of(1000, { rounds: 3, warmUps: 0 })];
}

export async function prepare({ create }, parameters) {
  converse = await create(parameters);
}

export async function run(_adapter, { turns }) {
  let calls = 0;
  const tool = () => {
    calls += 1;
    return "ok";
  };
  session += 1;
  await converse({ apiKey: `bench.agent.${turns}.${process.pid}-${session}`, turns, tool });
  if (calls !== turns * 4) throw new Error(`${calls} calls of ${turns * 4}`);
  return { count: turns };
}
