// The smoke conversation and the store of files as a program: `program.mjs MODEL_URL FOLDER`, where the folder is for sessions.
import { fileStore } from "crablet/stores";
import { keepsTheContract } from "../stores/contract.mjs";
import { ask } from "./ask.mjs";

const [modelUrl, folder] = process.argv.slice(2);
console.log(await ask(modelUrl));
await keepsTheContract(fileStore(folder));
