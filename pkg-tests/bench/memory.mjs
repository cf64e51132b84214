// What an idle session costs: prints `{ bytes, history }` for each of many sessions that had one exchange and now wait.
// Started by run.mjs with --expose-gc and the address of the model.
import { Agent, openaiCompatible } from "crablet";
import { used } from "./lib/used.mjs";

const [baseUrl, count] = [process.argv[2], Number(process.argv[3])];
const model = openaiCompatible("bench", { baseUrl: `${baseUrl}/v1`, apiKey: "bench.packed.200.x" });
const agent = new Agent({ model });

async function open() {
  const session = agent.session();
  await session.send("hi").result;
  return session;
}

// The first ones load the module and let its memory grow.
const warm = await Promise.all(Array.from({ length: 50 }, open));
const before = await used();
const sessions = [];
for (let number = 0; number < count; number += 1) sessions.push(await open());
const bytes = ((await used()) - before) / count;
const history = JSON.stringify(sessions.at(-1).toJSON()).length;
console.log(JSON.stringify({ bytes, history, kept: warm.length + sessions.length }));
process.exit();
