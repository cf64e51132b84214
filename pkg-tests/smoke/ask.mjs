// The smoke conversation with the package as `import` finds it.
import { Agent, openaiCompatible, tool } from "crablet";
import { converse } from "./conversation.mjs";

/**
 * @param {string} modelUrl the base URL of the demo model
 * @returns {Promise<string>} a line about what happened
 */
export const ask = (modelUrl) => converse({ Agent, openaiCompatible, tool }, modelUrl);
