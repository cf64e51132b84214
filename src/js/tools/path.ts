/** The longest path taken, in UTF-16 units: more than any project has. */
const MAX_PATH = 1_000;

/**
 * The names that lead to a place in a file store: none for the store's root. Every path that a model writes goes through
 * here, so that none leads out of the store.
 *
 * @throws Error with a message for the model, for a path with `..`, an absolute path, a backslash or a control character.
 */
export function pathNames(path: string): string[] {
  const told = JSON.stringify(path.slice(0, MAX_PATH));
  if (path.length > MAX_PATH) throw new Error(`the path is longer than ${MAX_PATH} characters`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(path)) throw new Error(`the path ${told} holds a control character`);
  if (path.includes("\\")) throw new Error(`the path ${told} holds a backslash: separate folders with "/"`);
  if (path.startsWith("/") || /^[a-zA-Z]:/.test(path))
    throw new Error(
      `the path ${told} is absolute: write it relative to the root of these files, such as "folder/file.txt"`,
    );
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw new Error(`the path ${told} leads upwards: ".." is not allowed, stay below the root`);
  return names;
}

/** The one way to write a path: names with "/" between them, and nothing for the root. */
export function normalPath(path: string): string {
  return pathNames(path).join("/");
}
