import { type MaybePromise, type Tool, tool, type ToolContext } from "../tool.js";
import { replaceExact } from "./edit.js";
import type { FileEntry, FileStore } from "./file-store.js";
import { globMatcher } from "./glob.js";
import { type Effort, LinearRegex } from "./linear-regex.js";
import { normalPath } from "./path.js";
import { clipped, decodeText, linesOf } from "./text.js";
import { walk } from "./walk.js";

/** How the file tools behave. */
export interface FileToolsOptions {
  /**
   * Whether a person is asked before a file is written or edited: always, never, or for the paths for which this says so.
   * Default: always.
   */
  readonly needsApproval?: boolean | ((path: string) => MaybePromise<boolean>);
  /** Folders that a walk through all folders does not enter. Default: `.git` and `node_modules`. */
  readonly ignore?: readonly string[];
  /** Limits; each has a default. */
  readonly limits?: Partial<FileLimits>;
}

/** How much the file tools read and tell. */
export interface FileLimits {
  /** The most bytes of a file that is read, edited, searched or written. Default 10 MiB. */
  readonly maxFileBytes: number;
  /** The most characters that one `readFile` gives. Default 50 000. */
  readonly maxReadCharacters: number;
  /** The most lines that one `listFiles` or `searchFiles` gives. Default 500. */
  readonly maxResults: number;
  /** The most entries of folders that one call looks at. Default 20 000. */
  readonly maxEntries: number;
  /** The most bytes that one `searchFiles` reads. Default 200 MiB. */
  readonly maxSearchBytes: number;
}

const LIMITS: FileLimits = {
  maxFileBytes: 10 * 1024 * 1024,
  maxReadCharacters: 50_000,
  maxResults: 500,
  maxEntries: 20_000,
  maxSearchBytes: 200 * 1024 * 1024,
};

/** The tools that only look. */
export interface ReadingTools {
  readonly readFile: Tool<{ path: string; from?: number; lines?: number }, string>;
  readonly listFiles: Tool<{ path?: string; glob?: string; recursive?: boolean }, string>;
  readonly searchFiles: Tool<
    { text: string; path?: string; glob?: string; regex?: boolean; ignoreCase?: boolean },
    string
  >;
}

/** The tools that change files. */
export interface WritingTools {
  readonly writeFile: Tool<{ path: string; content: string }, string>;
  readonly editFile: Tool<{ path: string; oldText: string; newText: string; all?: boolean }, string>;
}

/** The longest part of a line that a search tells, in UTF-16 units. */
const MAX_FOUND_LINE = 300;

/** The most steps of a regular expression in one search: about a second of work. */
const MAX_EFFORT = 50_000_000;

/** The deepest folder that is walked to. */
const MAX_DEPTH = 64;

/** How many names of a folder an error tells. */
const NAMED_SIBLINGS = 20;

/** Tools to read, list and search the files of a store. */
export function readingTools(store: FileStore, options: FileToolsOptions = {}): ReadingTools {
  const files = new Files(store, options);
  return {
    readFile: tool({
      description:
        "Read a text file. Gives the whole file, or some lines of it. A long file is cut, with a note that says how to read on.",
      input: {
        type: "object",
        properties: {
          path: PATH,
          from: { type: "integer", minimum: 1, description: "The first line wanted. Default: 1" },
          lines: { type: "integer", minimum: 1, description: "How many lines. Default: as many as fit" },
        },
        required: ["path"],
        additionalProperties: false,
      },
      repeatable: true,
      execute: (input) => files.read(input),
    }),
    listFiles: tool({
      description: "List a folder: folders end in a slash, files have their size in bytes.",
      input: {
        type: "object",
        properties: {
          path: FOLDER,
          recursive: { type: "boolean", description: "Whether to list all folders below too. Default: false" },
          glob: { ...GLOB, description: 'Only files that fit, such as "*.md"; lists all folders below too' },
        },
        additionalProperties: false,
      },
      repeatable: true,
      execute: (input, context) => files.list(input, context),
    }),
    searchFiles: tool({
      description: "Search text files, line by line. Gives path, line number and line of each place found.",
      input: {
        type: "object",
        properties: {
          text: { type: "string", description: "What to search for, as it is unless regex is true" },
          regex: { type: "boolean", description: "Whether text is a regular expression. Default: false" },
          ignoreCase: { type: "boolean", description: "Default: false" },
          path: FOLDER,
          glob: GLOB,
        },
        required: ["text"],
        additionalProperties: false,
      },
      repeatable: true,
      execute: (input, context) => files.search(input, context),
    }),
  };
}

/**
 * Tools to read, list, search, write and edit the files of a store. A person is asked before a file changes, unless an
 * option says otherwise.
 *
 * ```ts
 * const agent = new Agent({ model, tools: { ...fileTools(folderFiles("./notes")) } });
 * ```
 */
export function fileTools(store: FileStore, options: FileToolsOptions = {}): ReadingTools & WritingTools {
  const files = new Files(store, options);
  const { needsApproval = true } = options;
  const asks =
    typeof needsApproval === "function"
      ? ({ path }: { path: string }) => needsApproval(normalPath(path))
      : needsApproval;
  return {
    ...readingTools(store, options),
    writeFile: tool({
      description: "Write a text file: makes it, with the folders that lead to it, or replaces its whole content.",
      input: {
        type: "object",
        properties: { path: PATH, content: { type: "string", description: "The whole content" } },
        required: ["path", "content"],
        additionalProperties: false,
      },
      needsApproval: asks,
      sequential: true,
      execute: (input) => files.write(input),
    }),
    editFile: tool({
      description: "Replace a text in a file. The text must occur once in it; read the file first.",
      input: {
        type: "object",
        properties: {
          path: PATH,
          oldText: { type: "string", description: "The file's own text, to the character, with enough around it" },
          newText: { type: "string", description: "What stands there afterwards" },
          all: { type: "boolean", description: "Whether to replace every place. Default: false" },
        },
        required: ["path", "oldText", "newText"],
        additionalProperties: false,
      },
      needsApproval: asks,
      sequential: true,
      execute: (input) => files.edit(input),
    }),
  };
}

const PATH = { type: "string", description: 'Relative to the root, such as "folder/file.txt"' } as const;
const FOLDER = { type: "string", description: "A folder, relative to the root. Default: the root" } as const;
const GLOB = { type: "string", description: 'Only files that fit, such as "*.md" or "src/**/*.{js,ts}"' } as const;

class Files {
  readonly #store: FileStore;
  readonly #limits: FileLimits;
  readonly #ignore: ReadonlySet<string>;

  constructor(store: FileStore, options: FileToolsOptions) {
    this.#store = store;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#ignore = new Set(options.ignore ?? [".git", "node_modules"]);
  }

  async read({ path, from = 1, lines = Number.POSITIVE_INFINITY }: ReadInput): Promise<string> {
    const name = normalPath(path);
    const all = linesOf(await this.#text(name));
    if (all.length === 0) return `[${name} is empty]`;
    if (from > all.length) throw new Error(`${name} has ${all.length} lines, and line ${from} is beyond`);
    const { maxReadCharacters } = this.#limits;
    const given: string[] = [];
    let characters = 0;
    for (const line of all.slice(from - 1, Math.min(from - 1 + lines, all.length))) {
      characters += line.length + 1;
      if (characters > maxReadCharacters && given.length > 0) break;
      given.push(line);
    }
    const text = given.join("\n");
    const last = from + given.length - 1;
    if (text.length > maxReadCharacters) {
      const next = last < all.length ? ` The next line is ${last + 1}.` : "";
      return `${clipped(text, maxReadCharacters)}\n[line ${from} has ${text.length} characters and is cut.${next}]`;
    }
    if (from === 1 && last === all.length) return text;
    const next = last < all.length ? `; read on with "from": ${last + 1}` : "";
    return `${text}\n[lines ${from} to ${last} of ${all.length}${next}]`;
  }

  async list({ path = "", glob, recursive = false }: ListInput, { signal }: ToolContext): Promise<string> {
    const folder = normalPath(path);
    const fits = glob === undefined ? undefined : globMatcher(glob);
    const found: string[] = [];
    const depth = recursive || fits ? MAX_DEPTH : 0;
    const walked = walk(this.#store, folder, await this.#folder(folder), this.#walkLimits(depth, signal));
    for (let step = await walked.next(); ; step = await walked.next()) {
      if (step.done) {
        if (!step.value.complete) found.push(this.#tooMany());
        break;
      }
      const { path: place, entry } = step.value;
      if (fits && (entry.kind === "folder" || !fits(below(folder, place)))) continue;
      if (found.length >= this.#limits.maxResults) {
        found.push(`[more than ${this.#limits.maxResults} entries: list a folder of these, or give a glob]`);
        break;
      }
      found.push(described(place, entry));
    }
    if (found.length > 0) return found.join("\n");
    return fits ? `[no file fits ${JSON.stringify(glob)}]` : "[the folder is empty]";
  }

  async search(input: SearchInput, { signal }: ToolContext): Promise<string> {
    const { text, path = "", glob } = input;
    if (text === "") throw new Error("text is empty: say what to search for");
    const folder = normalPath(path);
    const effort: Effort = { left: MAX_EFFORT };
    const matches = lineMatcher(input, effort);
    const fits = glob === undefined ? undefined : globMatcher(glob);
    const found: string[] = [];
    const { maxResults, maxFileBytes } = this.#limits;
    let bytes = this.#limits.maxSearchBytes;
    let skipped = 0;
    for await (const file of this.#searched(folder, signal, found)) {
      if (fits && !fits(file === folder ? file : below(folder, file))) continue;
      const content = await this.#store.read(file, maxFileBytes).catch(() => undefined);
      const lines = content && decodeText(content);
      if (lines === undefined) {
        skipped += 1;
        continue;
      }
      bytes -= content?.length ?? 0;
      for (const [index, line] of linesOf(lines).entries()) {
        if (!matches(line)) continue;
        if (found.length >= maxResults)
          return [...found, `[more than ${maxResults} places: narrow the search]`].join("\n");
        found.push(`${file}:${index + 1}: ${clipped(line, MAX_FOUND_LINE)}`);
      }
      signal.throwIfAborted();
      if (bytes <= 0 || effort.left < 0) {
        found.push("[there is more than one search can go through: narrow it with path or glob, or a simpler pattern]");
        break;
      }
    }
    if (found.length === 0) found.push("[nothing found]");
    if (skipped > 0) found.push(`[${skipped} files were not searched: they are no text, too large or not readable]`);
    return found.join("\n");
  }

  async write({ path, content }: WriteInput): Promise<string> {
    const name = normalPath(path);
    return this.#alone(async () => {
      const bytes = await this.#put(name, content);
      return `wrote ${name}: ${bytes} bytes`;
    });
  }

  async edit({ path, oldText, newText, all = false }: EditInput): Promise<string> {
    const name = normalPath(path);
    return this.#alone(async () => {
      const content = replaceExact(name, await this.#text(name), oldText, newText, all);
      await this.#put(name, content);
      return `edited ${name}`;
    });
  }

  async #put(name: string, text: string): Promise<number> {
    if (this.#store.write === undefined) throw new Error("these files can only be read");
    if (name === "") throw new Error("a file needs a name");
    const content = new TextEncoder().encode(text);
    const { maxFileBytes } = this.#limits;
    if (content.length > maxFileBytes)
      throw new Error(`the content has ${content.length} bytes, and a file may have ${maxFileBytes}: split it`);
    await this.#store.write(name, content);
    return content.length;
  }

  /** Two edits of one file must not both start from the same content, also when two agents share the store. */
  async #alone<T>(work: () => Promise<T>): Promise<T> {
    const turn = (writing.get(this.#store) ?? Promise.resolve()).then(work);
    writing.set(
      this.#store,
      turn.catch(() => {}),
    );
    return turn;
  }

  async #text(name: string): Promise<string> {
    const content = name === "" ? undefined : await this.#store.read(name, this.#limits.maxFileBytes);
    if (content === undefined) throw new Error(await this.#missing(name));
    const text = decodeText(content);
    if (text === undefined) throw new Error(`${name} is not a text file (${content.length} bytes of other data)`);
    return text;
  }

  async #folder(name: string): Promise<readonly FileEntry[]> {
    const entries = await this.#store.list(name, this.#limits.maxEntries + 1);
    if (entries !== undefined) return entries;
    throw new Error(await this.#missing(name));
  }

  /** Why nothing is there, and what is there instead. */
  async #missing(name: string): Promise<string> {
    const asFolder = await this.#store.list(name, 1).catch(() => undefined);
    if (asFolder !== undefined) return `${name || "the root"} is a folder: list it with listFiles`;
    if (await this.#store.read(name, 0).catch(() => true)) return `${name} is a file, not a folder`;
    const names = name.split("/");
    names.pop();
    const parent = names.join("/");
    const beside = await this.#store.list(parent, NAMED_SIBLINGS + 1).catch(() => undefined);
    if (beside === undefined) return `there is no ${name}, and no folder ${parent}: look with listFiles`;
    const told = beside
      .slice(0, NAMED_SIBLINGS)
      .map((entry) => described(entry.name, entry))
      .sort();
    const more = beside.length > NAMED_SIBLINGS ? ", and more" : "";
    const where = parent === "" ? "the root" : parent;
    return `there is no ${name}; ${where} has ${told.length === 0 ? "nothing" : told.join(", ")}${more}`;
  }

  /** The files to search: all below a folder, or the one that was named. */
  async *#searched(path: string, signal: AbortSignal, notes: string[]): AsyncGenerator<string> {
    const entries = await this.#store.list(path, this.#limits.maxEntries + 1);
    if (entries === undefined) {
      await this.#text(path);
      yield path;
      return;
    }
    const walked = walk(this.#store, path, entries, this.#walkLimits(MAX_DEPTH, signal));
    for (let step = await walked.next(); ; step = await walked.next()) {
      if (step.done) {
        if (!step.value.complete) notes.push(this.#tooMany());
        return;
      }
      if (step.value.entry.kind === "file") yield step.value.path;
    }
  }

  #walkLimits(depth: number, signal: AbortSignal) {
    return { depth, maxEntries: this.#limits.maxEntries, ignore: this.#ignore, signal };
  }

  #tooMany(): string {
    return `[only the first ${this.#limits.maxEntries} entries were looked at: name a folder further down]`;
  }
}

/** The last change of each store. */
const writing = new WeakMap<FileStore, Promise<unknown>>();

type ReadInput = { readonly path: string; readonly from?: number; readonly lines?: number };
type ListInput = { readonly path?: string; readonly glob?: string; readonly recursive?: boolean };
type WriteInput = { readonly path: string; readonly content: string };
type EditInput = { readonly path: string; readonly oldText: string; readonly newText: string; readonly all?: boolean };
type SearchInput = {
  readonly text: string;
  readonly path?: string;
  readonly glob?: string;
  readonly regex?: boolean;
  readonly ignoreCase?: boolean;
};

function lineMatcher(
  { text, regex = false, ignoreCase = false }: SearchInput,
  effort: Effort,
): (line: string) => boolean {
  if (regex) {
    const pattern = new LinearRegex(text, ignoreCase);
    return (line) => pattern.matches(line, effort);
  }
  if (!ignoreCase) return (line) => line.includes(text);
  const wanted = text.toLowerCase();
  return (line) => line.toLowerCase().includes(wanted);
}

function below(folder: string, path: string): string {
  return folder === "" ? path : path.slice(folder.length + 1);
}

function described(path: string, { kind, size }: FileEntry): string {
  if (kind === "folder") return `${path}/`;
  if (kind === "other") return `${path} (neither file nor folder)`;
  return size === undefined ? path : `${path} ${size}`;
}
