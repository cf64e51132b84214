// A conversation as a file of the user's, and kept over a reload when the user keeps the browser session.
import { CrabletError, type SessionSnapshot } from "crablet";
import { keepForSession } from "../connection/settings";
import { isEmpty, load, save } from "./conversation";

const FORMAT = "crablet-playground-session";
const STORAGE_KEY = "crablet.conversation";

/** Hands the conversation to the user as a JSON file. */
export function saveToFile(): void {
  const url = URL.createObjectURL(new Blob([serialize()], { type: "application/json" }));
  const link = Object.assign(document.createElement("a"), { href: url, download: "crablet-session.json" });
  link.click();
  URL.revokeObjectURL(url);
}

/**
 * Goes on with the conversation in a file.
 *
 * @throws CrabletError `invalid-input` when it holds none.
 */
export async function loadFromFile(file: File): Promise<void> {
  await load(parse(await file.text()));
}

/** Keeps the conversation when the page goes, if the user keeps this browser session. Also one that is being worked on. */
export function keepOverReload(): void {
  addEventListener("pagehide", () => {
    try {
      if (keepForSession.value && !isEmpty.value) sessionStorage.setItem(STORAGE_KEY, serialize());
      else sessionStorage.removeItem(STORAGE_KEY);
    } catch {
      // A conversation larger than the browser's limit is not kept.
    }
  });
}

/** Goes on with the conversation that was kept, if there is one. */
export async function loadKept(): Promise<void> {
  const kept = sessionStorage.getItem(STORAGE_KEY);
  if (kept && keepForSession.value) await load(parse(kept));
}

function serialize(): string {
  return JSON.stringify({ format: FORMAT, version: 1, session: save() });
}

function parse(text: string): SessionSnapshot {
  try {
    const value: unknown = JSON.parse(text);
    if (
      typeof value === "object" &&
      value !== null &&
      "format" in value &&
      value.format === FORMAT &&
      "session" in value
    ) {
      return value.session as SessionSnapshot;
    }
  } catch {
    // Told below: what is not JSON is as wrong as what is something else.
  }
  throw new CrabletError({ kind: "invalid-input", message: "This file is no conversation that this page has saved." });
}
