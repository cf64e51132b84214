/** What stands in a folder. */
export interface FileEntry {
  /** Its name, without the folders above it. */
  readonly name: string;
  /** `other` is what can be neither read nor listed, such as a symbolic link, a pipe or a device. */
  readonly kind: "file" | "folder" | "other";
  /** The bytes of a file, where the store knows them without reading it. */
  readonly size?: number;
}

/**
 * Where the file tools work: three functions. `docs/tools.md` shows one's own.
 *
 * Paths are relative to the store's root, with "/" between names; "" is the root. The tools have checked them: no `..`, no
 * absolute path, no backslash. A store must see to what only it can know, such as symbolic links that lead out of it. The
 * message of whatever it throws is told to the model, so it must hold no secret.
 */
export interface FileStore {
  /**
   * What stands in a folder, at most `limit` entries in any order; `undefined` when there is no such folder.
   */
  list(folder: string, limit: number): Promise<readonly FileEntry[] | undefined>;
  /**
   * The content of a file; `undefined` when there is no such file.
   *
   * @throws when it has more than `maxBytes` bytes; `tooLarge` makes the error.
   */
  read(path: string, maxBytes: number): Promise<Uint8Array | undefined>;
  /**
   * Replaces a file, or makes it with the folders that lead to it. Either the whole content is there afterwards or the old
   * one. A store without this function can only be read.
   */
  write?(path: string, content: Uint8Array): Promise<void>;
}

/** The error of a file that is larger than what may be read of it. */
export function tooLarge(path: string, size: number, maxBytes: number): Error {
  return new Error(`${path} has ${size} bytes, and at most ${maxBytes} are read of one file`);
}
