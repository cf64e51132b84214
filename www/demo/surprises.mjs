// Words and files that nobody can have known before a check made them.
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A word that was never there before. */
export function random() {
  return randomBytes(6).toString("hex");
}

/** Writes a file with such a word into the folder lent to the agent. */
export async function surprise(demo) {
  const file = { name: `note-${random()}.txt`, content: `the word is ${random()}` };
  await writeFile(join(demo.filesFolder, file.name), `${file.content}\n`);
  return file;
}
