import { type FileEntry, type FileStore, tooLarge } from "./file-store.js";
import { normalPath } from "./path.js";

/** The most bytes of all files together, unless an option says otherwise. */
const MAX_TOTAL_BYTES = 64 * 1024 * 1024;

/** Files in memory: for a conversation's own drafts, and for tests. */
export class MemoryFiles implements FileStore {
  readonly #files = new Map<string, Uint8Array>();
  readonly #maxBytes: number;
  #bytes = 0;

  /**
   * A store that begins with these files.
   *
   * @param files what is there at first: text or bytes by path.
   * @param options `maxBytes` is the most bytes of all files together, by default 64 MiB.
   */
  constructor(files: Readonly<Record<string, string | Uint8Array>> = {}, options: { readonly maxBytes?: number } = {}) {
    this.#maxBytes = options.maxBytes ?? MAX_TOTAL_BYTES;
    for (const [path, content] of Object.entries(files))
      this.#put(path, typeof content === "string" ? new TextEncoder().encode(content) : content);
  }

  /** All files, by path. */
  files(): ReadonlyMap<string, Uint8Array> {
    return this.#files;
  }

  async list(folder: string, limit: number): Promise<readonly FileEntry[] | undefined> {
    const prefix = folder === "" ? "" : `${folder}/`;
    const entries = new Map<string, FileEntry>();
    for (const [path, content] of this.#files) {
      if (!path.startsWith(prefix)) continue;
      const [name = "", ...below] = path.slice(prefix.length).split("/");
      if (below.length > 0) entries.set(name, { name, kind: "folder" });
      else entries.set(name, { name, kind: "file", size: content.length });
      if (entries.size >= limit) break;
    }
    return entries.size === 0 && folder !== "" ? undefined : [...entries.values()];
  }

  async read(path: string, maxBytes: number): Promise<Uint8Array | undefined> {
    const content = this.#files.get(path);
    if (content !== undefined && content.length > maxBytes) throw tooLarge(path, content.length, maxBytes);
    return content?.slice();
  }

  async write(path: string, content: Uint8Array): Promise<void> {
    this.#put(path, content.slice());
  }

  #put(path: string, content: Uint8Array): void {
    const normal = normalPath(path);
    if (normal === "") throw new Error("a file needs a name");
    for (const other of this.#files.keys()) {
      if (other.startsWith(`${normal}/`)) throw new Error(`${normal} is a folder`);
      if (normal.startsWith(`${other}/`)) throw new Error(`${other} is a file, so nothing can stand below it`);
    }
    const bytes = this.#bytes - (this.#files.get(normal)?.length ?? 0) + content.length;
    if (bytes > this.#maxBytes)
      throw new Error(`there is no room for ${normal}: all files together may have ${this.#maxBytes} bytes`);
    this.#files.set(normal, content);
    this.#bytes = bytes;
  }
}
