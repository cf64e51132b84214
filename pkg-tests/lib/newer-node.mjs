// Newer versions of Node than the one that runs the tests.
import { createRequire } from "node:module";
import { join } from "node:path";
import { repository } from "./project.mjs";

const require = createRequire(join(repository, "pkg-tests/runtimes/package.json"));

/** The program of a version of Node that the packages of `runtimes/` have. */
export const newerNode = (major) => require.resolve(`node-${major}-${process.platform}-${process.arch}/bin/node`);
