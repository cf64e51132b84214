// The code blocks of a document that are tested: those below a comment `<!-- tested: NAME -->`.
import { readFile } from "node:fs/promises";

/**
 * @param {string} file
 * @returns {Promise<Map<string, string>>} the text of each block by its name
 */
export async function readSnippets(file) {
  const text = await readFile(file, "utf8");
  const snippets = new Map();
  for (const [, name, code] of text.matchAll(/^<!-- tested: (\S+) -->\n```[\w,]*\n(.*?)^```$/gms))
    snippets.set(name, code);
  const marked = text.match(/<!-- tested:/g)?.length ?? 0;
  if (snippets.size === 0 || snippets.size !== marked) {
    throw new Error(`${file} has ${marked} tested blocks, of which ${snippets.size} are written as they should be`);
  }
  return snippets;
}
