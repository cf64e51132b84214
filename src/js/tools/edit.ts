/** How many places of a text are named in an error. */
const NAMED_PLACES = 5;

/**
 * Replaces an exact text that occurs once, or everywhere when that is asked for. Line ends are taken as the file writes
 * them: a model writes "\n" also for a file with "\r\n".
 *
 * @throws Error with a message for the model when the text is not there, or there more than once.
 */
export function replaceExact(path: string, content: string, oldText: string, newText: string, all: boolean): string {
  if (oldText === "") throw new Error("oldText is empty: give the text to replace, or use writeFile for a whole file");
  if (oldText === newText) throw new Error("oldText and newText are the same: nothing would change");
  const usesCrLf = content.includes("\r\n") && !oldText.includes("\r");
  const wanted = usesCrLf ? oldText.replaceAll("\n", "\r\n") : oldText;
  const replacement = usesCrLf ? newText.replace(/\r?\n/g, "\r\n") : newText;
  const places = occurrences(content, wanted);
  if (places.length === 0) throw new Error(notFound(path, content, wanted));
  if (places.length > 1 && !all) throw new Error(severalFound(path, content, places));
  return content.split(wanted).join(replacement);
}

function occurrences(content: string, wanted: string): number[] {
  const places: number[] = [];
  for (let at = content.indexOf(wanted); at !== -1; at = content.indexOf(wanted, at + wanted.length)) places.push(at);
  return places;
}

function notFound(path: string, content: string, wanted: string): string {
  const first =
    wanted
      .split(/\r?\n/)
      .find((line) => line.trim() !== "")
      ?.trim() ?? "";
  const near = first === "" ? -1 : content.indexOf(first);
  const hint =
    near === -1
      ? "Read the file again: it may have changed."
      : `Its first line is at line ${lineAt(content, near)}, but what stands around it differs: compare blanks, indentation and the lines that follow.`;
  return `oldText does not occur in ${path}; it must be the file's own text, to the character. ${hint}`;
}

function severalFound(path: string, content: string, places: readonly number[]): string {
  const lines = places.slice(0, NAMED_PLACES).map((place) => lineAt(content, place));
  const more = places.length > NAMED_PLACES ? " and others" : "";
  return `oldText occurs ${places.length} times in ${path}, at the lines ${lines.join(", ")}${more}: add lines before or after it until it is the only one, or set "all" to replace each`;
}

function lineAt(content: string, position: number): number {
  return content.slice(0, position).split("\n").length;
}
