import { CrabletError } from "../error.js";
import { type FileEntry, type FileStore, tooLarge } from "./file-store.js";
import { pathNames } from "./path.js";

/**
 * The folder that a user picked with `showDirectoryPicker()`, or any other directory handle of the File System Access API.
 * A handle leads nowhere but below itself, so nothing outside the folder can be reached.
 *
 * Writing needs the user's permission for the handle: pick it with `{ mode: "readwrite" }`.
 */
export function directoryFiles(
  directory: FileSystemDirectoryHandle | (() => Promise<FileSystemDirectoryHandle>),
): FileStore {
  const root = typeof directory === "function" ? directory : async () => directory;
  return {
    async list(folder, limit) {
      const found = await folderAt(await root(), pathNames(folder));
      if (found === undefined) return undefined;
      const entries: FileEntry[] = [];
      for await (const { name, kind } of found.values()) {
        if (entries.length >= limit) break;
        entries.push({ name, kind: kind === "directory" ? "folder" : "file" });
      }
      return entries;
    },

    async read(path, maxBytes) {
      const names = pathNames(path);
      const name = names.pop();
      const folder = await folderAt(await root(), names);
      if (folder === undefined || name === undefined) return undefined;
      const handle = await orUndefined(folder.getFileHandle(name));
      if (handle === undefined) return undefined;
      const file = await permitted(handle.getFile());
      if (file.size > maxBytes) throw tooLarge(path, file.size, maxBytes);
      return new Uint8Array(await file.arrayBuffer());
    },

    async write(path, content) {
      const names = pathNames(path);
      const name = names.pop();
      if (name === undefined) throw new Error("a file needs a name");
      let folder = await root();
      for (const parent of names) folder = await permitted(folder.getDirectoryHandle(parent, { create: true }));
      const handle = await permitted(folder.getFileHandle(name, { create: true }));
      // What is written becomes the file when it is closed, in one step.
      const stream = await permitted(handle.createWritable());
      try {
        await stream.write(content as Uint8Array<ArrayBuffer>);
      } catch (error) {
        await stream.abort().catch(() => {});
        throw error;
      }
      await stream.close();
    },
  };
}

/**
 * The origin private file system: files that the browser keeps for this site, and that no user and no other site sees.
 *
 * @param folder where in it the files are, by default at its root; made when it is not there.
 */
export function opfsFiles(folder = ""): FileStore {
  const names = pathNames(folder);
  let opened: Promise<FileSystemDirectoryHandle> | undefined;
  const open = async (): Promise<FileSystemDirectoryHandle> => {
    const storage = (globalThis as { navigator?: { storage?: Partial<StorageManager> } }).navigator?.storage;
    if (storage?.getDirectory === undefined)
      throw new CrabletError({
        kind: "storage",
        message: "this place has no origin private file system: it is there in pages and workers of secure contexts",
      });
    let directory = await storage.getDirectory.call(storage);
    for (const name of names) directory = await directory.getDirectoryHandle(name, { create: true });
    return directory;
  };
  return directoryFiles(() => {
    opened ??= open().catch((error) => {
      opened = undefined;
      throw error;
    });
    return opened;
  });
}

async function folderAt(
  root: FileSystemDirectoryHandle,
  names: readonly string[],
): Promise<FileSystemDirectoryHandle | undefined> {
  let folder: FileSystemDirectoryHandle | undefined = root;
  for (const name of names) folder = folder && (await orUndefined(folder.getDirectoryHandle(name)));
  return folder;
}

/** What is not there, or is of another kind, is `undefined`. */
async function orUndefined<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await permitted(found);
  } catch (error) {
    if (error instanceof DOMException && ["NotFoundError", "TypeMismatchError"].includes(error.name)) return undefined;
    throw error;
  }
}

async function permitted<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotAllowedError")
      throw new Error("the user has not allowed this for the folder: ask the user to choose it again", {
        cause: error,
      });
    throw error;
  }
}
