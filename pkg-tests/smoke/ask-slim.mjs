// The smoke conversation with the entry that has the wasm as a file of its own.
import { Agent, openaiCompatible, tool } from "crablet/slim";
import { converse } from "./conversation.mjs";

/**
 * @param {string} modelUrl the base URL of the demo model
 * @returns {Promise<string>} a line about what happened
 */
export const askSlim = (modelUrl) => converse({ Agent, openaiCompatible, tool }, modelUrl);
