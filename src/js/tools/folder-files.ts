import { CrabletError } from "../error.js";
import { type FileEntry, type FileStore, tooLarge } from "./file-store.js";
import { pathNames } from "./path.js";

/**
 * A folder of the machine, in Node, Deno and Bun.
 *
 * Symbolic links are never followed, and neither pipes nor devices opened. The folder itself may be a link. Programs that
 * put links in the place of folders while a tool is at work could still lead it out of the folder for that moment: do not
 * share the folder with programs that you do not trust.
 *
 * @param path the folder, which must be there when the first tool uses it.
 */
export function folderFiles(path: string): FileStore {
  let opened: Promise<Folder> | undefined;
  const folder = (): Promise<Folder> => {
    opened ??= openFolder(path).catch((error) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  return {
    list: (names, limit) => guarded(async () => (await folder()).list(pathNames(names), limit)),
    read: (names, maxBytes) => guarded(async () => (await folder()).read(pathNames(names), maxBytes)),
    write: (names, content) => guarded(async () => (await folder()).write(pathNames(names), content)),
  };
}

/** The system's own message names the whole path on the machine, which is nothing for a model. */
async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = codeOf(error);
    if (code === "" || CrabletError.is(error)) throw error;
    throw new Error(`the system refused: ${REASONS[code] ?? code}`, { cause: error });
  }
}

const REASONS: Record<string, string> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  ELOOP: "it is a symbolic link",
  ENAMETOOLONG: "the name is too long",
  ENOSPC: "the disk is full",
  EROFS: "the disk can only be read",
};

async function openFolder(path: string): Promise<Folder> {
  const { process } = globalThis as {
    process?: { readonly platform?: string; getBuiltinModule?: (name: string) => unknown };
  };
  const files = process?.getBuiltinModule?.("node:fs/promises") as FileModule | undefined;
  const paths = process?.getBuiltinModule?.("node:path") as PathModule | undefined;
  if (files === undefined || paths === undefined)
    throw new CrabletError({
      kind: "storage",
      message: "folderFiles needs Node 20.16, Deno 2.1 or Bun 1.2; in a browser use directoryFiles or opfsFiles",
    });
  const root = await files.realpath(path).catch(() => undefined);
  if (root === undefined || !(await files.stat(root)).isDirectory())
    throw new CrabletError({ kind: "storage", message: "the folder of these files is not there" });
  return new Folder(root, files, paths, ["darwin", "win32"].includes(process?.platform ?? ""));
}

class Folder {
  readonly #root: string;
  readonly #files: FileModule;
  readonly #paths: PathModule;
  readonly #ignoresCase: boolean;

  constructor(root: string, files: FileModule, paths: PathModule, ignoresCase: boolean) {
    this.#root = root;
    this.#files = files;
    this.#paths = paths;
    this.#ignoresCase = ignoresCase;
  }

  async list(names: readonly string[], limit: number): Promise<FileEntry[] | undefined> {
    const folder = await this.#walk(names);
    if (folder === undefined || !(await this.#files.lstat(folder)).isDirectory()) return undefined;
    await this.#assertUnmoved(folder);
    const entries: FileEntry[] = [];
    const opened = await this.#files.opendir(folder);
    for await (const entry of opened) {
      if (entries.length >= limit) break;
      if (entry.isDirectory()) entries.push({ name: entry.name, kind: "folder" });
      else if (!entry.isFile()) entries.push({ name: entry.name, kind: "other" });
      else {
        const info = await orUndefined(this.#files.lstat(this.#paths.join(folder, entry.name)));
        if (info?.isFile()) entries.push({ name: entry.name, kind: "file", size: info.size });
      }
    }
    return entries;
  }

  async read(names: readonly string[], maxBytes: number): Promise<Uint8Array | undefined> {
    const path = await this.#walk(names);
    if (path === undefined) return undefined;
    const found = await this.#files.lstat(path);
    if (found.isDirectory()) return undefined;
    if (!found.isFile()) throw new Error(`${names.join("/")} is neither a file nor a folder`);
    const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = this.#files.constants;
    const file = await this.#files.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      // What was opened is what was looked at, and it stands where it was looked for.
      const info = await file.stat();
      if (!info.isFile() || info.ino !== found.ino)
        throw new Error(`${names.join("/")} was replaced while it was read`);
      await this.#assertUnmoved(path);
      if (info.size > maxBytes) throw tooLarge(names.join("/"), info.size, maxBytes);
      return await readAll(file, names.join("/"), maxBytes);
    } finally {
      await file.close();
    }
  }

  async write(names: readonly string[], content: Uint8Array): Promise<void> {
    const name = names.at(-1);
    if (name === undefined) throw new Error("a file needs a name");
    const folder = await this.#makeFolders(names.slice(0, -1));
    const path = this.#paths.join(folder, name);
    const found = await orUndefined(this.#files.lstat(path));
    if (found?.isSymbolicLink()) throw isLink(names);
    if (found && !found.isFile()) throw new Error(`${names.join("/")} is there already, and is not a file`);
    // A new file in the place of the old one: in one step, and never through a link that was put there meanwhile.
    const draft = this.#paths.join(folder, `.crablet-${crypto.randomUUID()}`);
    try {
      const file = await this.#files.open(draft, "wx", found ? found.mode & 0o777 : 0o666);
      try {
        await file.writeFile(content);
        await file.sync();
      } finally {
        await file.close();
      }
      await this.#assertUnmoved(folder);
      await this.#files.rename(draft, path);
    } catch (error) {
      await orUndefined(this.#files.unlink(draft));
      throw error;
    }
  }

  /** The place of these names, or `undefined` when nothing is there. */
  async #walk(names: readonly string[]): Promise<string | undefined> {
    let path = this.#root;
    for (const [depth, name] of names.entries()) {
      path = this.#paths.join(path, checkedName(name, this.#paths.sep));
      const info = await orUndefined(this.#files.lstat(path));
      if (info === undefined) return undefined;
      if (info.isSymbolicLink()) throw isLink(names.slice(0, depth + 1));
    }
    return path;
  }

  async #makeFolders(names: readonly string[]): Promise<string> {
    let path = this.#root;
    for (const [depth, name] of names.entries()) {
      path = this.#paths.join(path, checkedName(name, this.#paths.sep));
      await this.#files.mkdir(path).catch(ignoreExisting);
      const info = await this.#files.lstat(path);
      const place = names.slice(0, depth + 1);
      if (info.isSymbolicLink()) throw isLink(place);
      if (!info.isDirectory()) throw new Error(`${place.join("/")} is a file, so nothing can stand below it`);
    }
    await this.#assertUnmoved(path);
    return path;
  }

  /** A path that holds no link is its own real path. */
  async #assertUnmoved(path: string): Promise<void> {
    const real = await this.#files.realpath(path);
    // Where the system ignores case, a model may write a name in another one.
    const isSame = this.#ignoresCase ? folded(real) === folded(path) : real === path;
    if (!isSame) throw new Error("the folder was replaced by a symbolic link");
  }
}

/** Windows takes more than letters in a name: streams, devices, and dots and blanks that it drops. */
function checkedName(name: string, separator: string): string {
  const isSpecial = /[:<>"|?*]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;
  if (separator === "\\" && isSpecial.test(name))
    throw new Error(`${JSON.stringify(name)} is not a file name on Windows`);
  return name;
}

function isLink(names: readonly string[]): Error {
  return new Error(
    `${names.join("/")} is a symbolic link, and links are not followed: use the path of what it points to`,
  );
}

/** A file may grow while it is read. */
async function readAll(file: FileHandle, path: string, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { bytesRead, buffer } = await file.read(new Uint8Array(CHUNK_BYTES), 0, CHUNK_BYTES, null);
    if (bytesRead === 0) break;
    size += bytesRead;
    if (size > maxBytes) throw tooLarge(path, size, maxBytes);
    chunks.push(buffer.subarray(0, bytesRead));
  }
  const content = new Uint8Array(size);
  let position = 0;
  for (const chunk of chunks) {
    content.set(chunk, position);
    position += chunk.length;
  }
  return content;
}

const CHUNK_BYTES = 64 * 1024;

/** What is not there, or stands below a file, is `undefined`. */
async function orUndefined<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return undefined;
    throw error;
  }
}

function ignoreExisting(error: unknown): void {
  if (codeOf(error) !== "EEXIST") throw error;
}

function folded(path: string): string {
  return path.normalize("NFC").toLowerCase();
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | undefined)?.code ?? "");
}

/** What is used of `node:path`. */
interface PathModule {
  readonly sep: string;
  join(...parts: string[]): string;
}

/** What is used of `node:fs/promises`. */
interface FileModule {
  readonly constants: { readonly O_RDONLY: number; readonly O_NOFOLLOW?: number; readonly O_NONBLOCK?: number };
  realpath(path: string): Promise<string>;
  stat(path: string): Promise<FileInfo>;
  lstat(path: string): Promise<FileInfo>;
  mkdir(path: string): Promise<unknown>;
  unlink(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  opendir(path: string): Promise<AsyncIterable<{ readonly name: string } & FileKind>>;
  open(path: string, flags: number | string, mode?: number): Promise<FileHandle>;
}

interface FileKind {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

interface FileInfo extends FileKind {
  readonly size: number;
  readonly ino: number;
  readonly mode: number;
}

interface FileHandle {
  stat(): Promise<FileInfo>;
  read(
    buffer: Uint8Array,
    offset: number,
    length: number,
    position: null,
  ): Promise<{ readonly bytesRead: number; readonly buffer: Uint8Array }>;
  writeFile(content: Uint8Array): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}
