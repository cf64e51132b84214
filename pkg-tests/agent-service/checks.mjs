// What an agent service keeps. Each check starts a server of its own; `options` are what suites/agent-service.mjs gives.
import { join } from "node:path";
import { run } from "../lib/process.mjs";
import { keepsTheContract } from "../stores/contract.mjs";
import { natsStore } from "crablet/agent-service";
import { connected } from "./clients.mjs";
import { crowd, throughput } from "./crowd.mjs";
import { cuts } from "./cuts.mjs";
import { failing } from "./failing.mjs";
import { inputs } from "./inputs.mjs";
import { page } from "./page.mjs";
import { permissions } from "./permissions.mjs";
import { slowWorker } from "./slow.mjs";
import { takeovers } from "./takeovers.mjs";

/** Runs all checks and says what was seen. */
export async function checkAll(options) {
  const wanted = (process.env.CRABLET_AGENT_SERVICE ?? "").split(",").filter((name) => name !== "");
  const checks = {
    types,
    contract,
    inputs,
    failing,
    page,
    permissions,
    slowWorker,
    cuts,
    crowd,
    throughput,
    ...nativeChecks(options),
  };
  const seen = [];
  for (const [name, check] of Object.entries(checks)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const started = performance.now();
    const said = await check(options);
    seen.push(said);
    console.log(`   ${name} (${((performance.now() - started) / 1000).toFixed(1)} s): ${said}`);
  }
  return seen.join("; ");
}

/** The checks over workers in Rust, where the program is at hand. */
function nativeChecks({ startNative }) {
  if (startNative === undefined) return {};
  const natively = (check) => async (options) => `in Rust: ${await check({ ...options, startWorker: startNative })}`;
  return {
    takeovers,
    slowNative: natively(slowWorker),
    cutsNative: natively(cuts),
    crowdNative: natively(crowd),
    throughputNative: natively((given) => throughput({ ...given, runs: 300 })),
  };
}

/** The official packages' connection and JetStream are what the entry takes. */
async function types({ project }) {
  const compiler = join(project.folder, "node_modules/typescript/bin/tsc");
  const options = "--noEmit --strict --skipLibCheck --module nodenext --target es2022".split(" ");
  const libraries = ["--lib", "es2023,dom,esnext.disposable,dom.asynciterable"];
  await run(process.execPath, [compiler, ...options, ...libraries, join(project.tests, "agent-service/types.ts")]);
  return "the types of the official packages fit";
}

/** The store's contract, also where a value goes in several revisions. */
async function contract({ startNats }) {
  for (const config of ["", "max_payload: 65536"]) {
    const server = await startNats({ config });
    const nats = await connected(server.url);
    try {
      await keepsTheContract(natsStore({ ...nats, bucket: "conversations" }));
    } finally {
      await nats.connection.close();
      await server.stop();
    }
  }
  return "the store keeps the contract, with values whole and in parts";
}
