// One adapter in a process of its own, so that each has its own heap and its own compiled code. It runs what it is told to
// over IPC, and answers with CPU and wall time and what the area counted.
import { pathToFileURL } from "node:url";

let area;
let adapter;
globalThis.AI_SDK_LOG_WARNINGS = false;

process.on("disconnect", () => process.exit());
process.on("message", async ({ command, ...given }) => {
  try {
    process.send({ isDone: true, ...(await commands[command](given)) });
  } catch (error) {
    process.send({ isDone: false, error: String(error?.stack ?? error).slice(0, 1500) });
  }
});

const commands = {
  load: async ({ areaFile, adapterFile }) => {
    area = await import(pathToFileURL(areaFile));
    adapter = await import(pathToFileURL(adapterFile));
    return { supports: adapter.supports };
  },
  prepare: async ({ parameters }) => {
    await area.prepare(adapter, parameters);
    return {};
  },
  run: async ({ parameters }) => {
    globalThis.gc();
    const [cpu, start] = [process.cpuUsage(), performance.now()];
    const output = await area.run(adapter, parameters);
    const wall = performance.now() - start;
    return { wall, cpu: process.cpuUsage(cpu).user / 1000, output };
  },
};
