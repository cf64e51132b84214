import { CrabletError, invalidInput } from "../error.js";
import { conflict, type SessionStore, storageError } from "../store.js";

/**
 * Keeps conversations in a folder, in Node, Deno and Bun: each in a folder of its own below it with a file for each write.
 *
 * A file is named after the version it makes and appears under that name whole and at once, and only if there is none of that
 * name yet. So of two writers, in this process or another, one is refused, and a crash or a power cut leaves no half of a
 * checkpoint. There is no lock that could stay behind. The file store of the Rust crate reads and writes the same files.
 *
 * @param folder is made with the first write. Its file system must know hard links, as all common ones but FAT do.
 */
export function fileStore(folder: string): SessionStore {
  const placeOf = (id: string): Place => new Place(builtins(), folder, id);
  return {
    read: (id) => guarded(() => placeOf(id).read(), "read"),
    append: (id, expected, entries) => guarded(() => placeOf(id).write(expected, entries, false), "written"),
    replace: (id, expected, base) => guarded(() => placeOf(id).write(expected, base, true), "written"),
    delete: (id) => guarded(() => placeOf(id).remove(), "removed"),
    list: () =>
      guarded(async () => {
        const { files, paths } = builtins();
        const ids: string[] = [];
        for (const name of await namesIn(files, folder)) {
          const id = decoded(name);
          if (id !== undefined && versionsOf(await namesIn(files, paths.join(folder, name))).length > 0) ids.push(id);
        }
        return ids.sort();
      }, "read"),
  };
}

/** Where one conversation is kept. */
class Place {
  readonly #files: Files;
  readonly #paths: Paths;
  readonly #id: string;
  readonly #folder: string;

  constructor({ files, paths }: Builtins, folder: string, id: string) {
    const name = encoded(id);
    if (name === "" || name.length > MAX_NAME)
      throw invalidInput(`the id of a session has 1 to ${MAX_NAME} letters, and ${JSON.stringify(id)} does not`);
    this.#files = files;
    this.#paths = paths;
    this.#id = id;
    this.#folder = paths.join(folder, name);
  }

  async read(): Promise<{ version: number; entries: string[] } | undefined> {
    for (let attempt = 0; attempt < MAX_READS; attempt += 1) {
      const versions = versionsOf(await namesIn(this.#files, this.#folder));
      const version = versions.at(-1);
      if (version === undefined) return undefined;
      const text = await this.#text(versions);
      if (text !== undefined) return { version, entries: text.split("\n").filter((entry) => entry !== "") };
      // Somebody replaced it meanwhile.
    }
    throw conflict(this.#id, 0);
  }

  async write(expected: number, entries: readonly string[], replaces: boolean): Promise<number> {
    await this.#files.mkdir(this.#folder, { recursive: true });
    const version = expected + 1;
    const path = this.#file(version);
    const unfinished = this.#paths.join(this.#folder, `.${version}-${crypto.randomUUID()}`);
    try {
      await this.#writeSynced(unfinished, entries.map((entry) => `${entry}\n`).join(""));
      await this.#files.link(unfinished, path);
    } catch (error) {
      if (["EEXIST", "ENOENT"].includes(codeOf(error))) throw conflict(this.#id, expected);
      throw error;
    } finally {
      await this.#files.rm(unfinished, { force: true });
    }
    if (!(await this.#follows(expected))) {
      await this.#files.rm(path, { force: true });
      throw conflict(this.#id, expected);
    }
    await this.#syncFolder();
    if (replaces) await this.#forgetBefore(version);
    return version;
  }

  remove(): Promise<void> {
    return this.#files.rm(this.#folder, { recursive: true, force: true });
  }

  /** The files from the latest that is a whole conversation; `undefined` when one is gone. */
  async #text(versions: readonly number[]): Promise<string | undefined> {
    const texts: string[] = [];
    for (const version of versions.toReversed()) {
      try {
        texts.push(await this.#files.readFile(this.#file(version), "utf8"));
      } catch (error) {
        if (codeOf(error) === "ENOENT") return undefined;
        throw error;
      }
      if (texts.at(-1)?.startsWith(BEGINNING)) break;
    }
    return texts.reverse().join("");
  }

  /**
   * Whether the version that was just written is the one after the expected one, and not one that another writer has left
   * behind. Whoever replaces a conversation removes its older files from the oldest on: while the expected one is there, so
   * was every later one.
   */
  async #follows(expected: number): Promise<boolean> {
    if (expected === 0) return versionsOf(await namesIn(this.#files, this.#folder)).join() === "1";
    // Not `access`, for which Deno wants to be allowed to know the user.
    return this.#files.stat(this.#file(expected)).then(
      () => true,
      () => false,
    );
  }

  async #forgetBefore(version: number): Promise<void> {
    const names = await namesIn(this.#files, this.#folder);
    for (const older of versionsOf(names)) {
      if (older < version) await this.#files.rm(this.#file(older), { force: true });
    }
    // What a writer was at when its process ended.
    for (const name of names) {
      const made = /^\.(\d+)-/.exec(name)?.[1];
      if (made !== undefined && Number(made) <= version)
        await this.#files.rm(this.#paths.join(this.#folder, name), { force: true });
    }
  }

  async #writeSynced(path: string, content: string): Promise<void> {
    const file = await this.#files.open(path, "w");
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** Elsewhere than on Unix a folder cannot be synced, and need not be. */
  async #syncFolder(): Promise<void> {
    const folder = await this.#files.open(this.#folder, "r").catch(() => undefined);
    await folder?.sync().catch(() => {});
    await folder?.close();
  }

  #file(version: number): string {
    return this.#paths.join(this.#folder, fileName(version));
  }
}

const fileName = (version: number): string => `${String(version).padStart(10, "0")}.jsonl`;

/** The versions that have a file, in order. */
function versionsOf(names: readonly string[]): number[] {
  const versions = names.flatMap((name) => (/^\d+\.jsonl$/.test(name) ? [Number.parseInt(name, 10)] : []));
  return versions.sort((left, right) => left - right);
}

/** The names in a folder; none when it is not there. */
async function namesIn(files: Files, folder: string): Promise<string[]> {
  try {
    return await files.readdir(folder);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return [];
    throw error;
  }
}

/** An id as the name of a folder: what is not plain becomes `%` and two hexadecimal digits. */
function encoded(id: string): string {
  return Array.from(new TextEncoder().encode(id), (byte) => {
    const letter = String.fromCharCode(byte);
    return /[A-Za-z0-9_-]/.test(letter) ? letter : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }).join("");
}

function decoded(name: string): string | undefined {
  try {
    const id = decodeURIComponent(name);
    return encoded(id) === name ? id : undefined;
  } catch {
    return undefined;
  }
}

async function guarded<T>(work: () => Promise<T>, what: string): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw storageError(error, `the session could not be ${what}`);
  }
}

function codeOf(error: unknown): string {
  return String((error as { readonly code?: unknown } | undefined)?.code ?? "");
}

/** How a text begins that is a whole conversation and not an addition to one. */
const BEGINNING = '{"format":';

/** File systems allow 255 bytes. */
const MAX_NAME = 200;

/** How often a conversation may be replaced while it is read. */
const MAX_READS = 10;

/** What is used of `node:fs/promises`. */
interface Files {
  mkdir(path: string, options: { recursive: true }): Promise<unknown>;
  readdir(path: string): Promise<string[]>;
  readFile(path: string, encoding: "utf8"): Promise<string>;
  open(path: string, flags: "r" | "w"): Promise<OpenFile>;
  stat(path: string): Promise<unknown>;
  link(existing: string, path: string): Promise<void>;
  rm(path: string, options: { recursive?: true; force: true }): Promise<void>;
}

interface OpenFile {
  writeFile(content: string): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** What is used of `node:path`. */
interface Paths {
  join(...parts: string[]): string;
}

interface Builtins {
  readonly files: Files;
  readonly paths: Paths;
}

function builtins(): Builtins {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } };
  const files = process?.getBuiltinModule?.("node:fs/promises") as Files | undefined;
  const paths = process?.getBuiltinModule?.("node:path") as Paths | undefined;
  if (files === undefined || paths === undefined)
    throw new CrabletError({
      kind: "storage",
      message: "fileStore needs Node 20.16, Deno 2.1 or Bun 1.2; in a browser use indexedDbStore",
    });
  return { files, paths };
}
