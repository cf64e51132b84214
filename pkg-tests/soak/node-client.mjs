// The soak in Node: `node --expose-gc node-client.mjs`, started with an IPC channel. It is told what to do in messages of
// `{ id, do }` and answers `{ id, gave }` or `{ id, failed }`.
import { startChurn, watchModule } from "./churn.mjs";

const moduleBytes = watchModule();
let churn;

const ACTIONS = {
  start(given) {
    churn = startChurn(given);
  },
  async sample() {
    // The second pass frees what the first one finalized.
    for (let pass = 0; pass < 2; pass += 1) {
      globalThis.gc();
      await new Promise((resolve) => setImmediate(resolve));
    }
    // Buffers are part of what is external.
    const { heapUsed, external } = process.memoryUsage();
    return { heap: heapUsed, external, module: moduleBytes(), ...told() };
  },
  async stop() {
    await churn.stop();
    return { ...told(), active: process.getActiveResourcesInfo() };
  },
};

function told() {
  return { counts: churn.counts, errors: churn.errors };
}

process.on("message", async ({ id, do: action, given }) => {
  try {
    process.send({ id, gave: await ACTIONS[action](given) });
  } catch (error) {
    process.send({ id, failed: String(error.stack ?? error) });
  }
});
process.on("disconnect", () => process.exit());
