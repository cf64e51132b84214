// The smoke conversation as a CommonJS program: `program.cjs MODEL_URL`.
const crablet = require("crablet");
const { converse } = require("./conversation.mjs");

converse(crablet, process.argv[2]).then(console.log);
