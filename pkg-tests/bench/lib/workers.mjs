// Runs the cases of an area with every adapter, in turn: A B C, B C A, C A B and so on.
import { fork } from "node:child_process";
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ratios, summary } from "./statistics.mjs";

const folder = fileURLToPath(new URL("..", import.meta.url));

/** How long one run may take, in milliseconds. */
const RUN_LIMIT = 240_000;

/**
 * @param {string} name of the area: `areas/NAME.mjs` with the adapters of `adapters/NAME/`
 * @param {{ port: number, rounds: number, isQuick: boolean, only: string[] | undefined }} options
 * @returns {Promise<{ title: string, rows: object[] }[]>} a table for each case
 */
export async function runArea(name, { port, rounds, isQuick, only }) {
  const area = await import(`../areas/${name}.mjs`);
  const files = readdirSync(join(folder, "adapters", name)).map((file) => join(folder, "adapters", name, file));
  const wanted = files.filter((file) => {
    const adapter = basename(file, ".mjs");
    return only === undefined || adapter === area.floor || only.includes(adapter);
  });
  const workers = await Promise.all(wanted.map((file) => Worker.start(name, file)));
  try {
    const results = [];
    for (const each of area.cases({ port, isQuick })) {
      const able = workers.filter(({ supports }) => !each.needs || !supports || supports.includes(each.needs));
      results.push(await runCase(each, able, area, isQuick ? 1 : (each.rounds ?? rounds)));
    }
    return results;
  } finally {
    for (const worker of workers) worker.stop();
  }
}

async function runCase({ title, parameters, warmUps = 2 }, workers, { floor, unit }, rounds) {
  const measured = new Map(
    workers.map((worker) => [worker, { cpu: [], wall: [], output: undefined, error: undefined }]),
  );
  const isQuick = rounds === 1;
  for (const worker of workers) await attempt(measured.get(worker), () => worker.ask("prepare", { parameters }));
  for (let round = isQuick ? 0 : -warmUps; round < rounds; round += 1) {
    const start = Math.max(round, 0) % workers.length;
    for (const worker of [...workers.slice(start), ...workers.slice(0, start)]) {
      const result = measured.get(worker);
      await attempt(result, async () => {
        const { cpu, wall, output } = await worker.ask("run", { parameters });
        if (round < 0) return;
        result.cpu.push(cpu);
        result.wall.push(wall);
        result.output = output;
      });
    }
  }
  const least = measured.get(workers.find((worker) => worker.name === floor));
  const rows = workers.map((worker) => {
    const { cpu, wall, output, error } = measured.get(worker);
    if (error !== undefined || cpu.length === 0) return { name: worker.name, error: error ?? "no run" };
    const each = (summary(cpu).median * 1000) / output.count;
    const row = { name: worker.name, each, unit: `µs a ${unit}` };
    return least.error === undefined
      ? { ...row, ratio: ratios(cpu, least.cpu), wallRatio: ratios(wall, least.wall) }
      : row;
  });
  return { title, rows };
}

/** A failure is kept, and nothing more is asked of who failed. */
async function attempt(result, work) {
  if (result.error !== undefined) return;
  try {
    await work();
  } catch (error) {
    result.error = error.message.split("\n")[0].slice(0, 200);
  }
}

class Worker {
  static async start(area, file) {
    const child = fork(join(folder, "lib/worker.mjs"), [], {
      execArgv: ["--expose-gc"],
      env: { ...process.env, LANGSMITH_TRACING: "false", NODE_NO_WARNINGS: "1" },
    });
    const worker = new Worker(child, basename(file, ".mjs"));
    const loaded = await worker.ask("load", { areaFile: join(folder, "areas", `${area}.mjs`), adapterFile: file });
    worker.supports = loaded.supports;
    return worker;
  }

  constructor(child, name) {
    this.child = child;
    this.name = name;
  }

  async ask(command, given) {
    const { child, name } = this;
    const answer = await new Promise((resolve, reject) => {
      const timer = setTimeout(() => finish(reject, new Error(`${name} takes longer than ${RUN_LIMIT} ms`)), RUN_LIMIT);
      const onExit = () => finish(reject, new Error(`${name} ended`));
      const onMessage = (message) => finish(resolve, message);
      const finish = (settle, value) => {
        clearTimeout(timer);
        child.off("exit", onExit).off("message", onMessage);
        settle(value);
      };
      child.on("exit", onExit).on("message", onMessage);
      if (child.exitCode === null) child.send({ command, ...given });
      else onExit();
    });
    if (!answer.isDone) throw new Error(answer.error);
    return answer;
  }

  stop() {
    this.child.kill();
  }
}
