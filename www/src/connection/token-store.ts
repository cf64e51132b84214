// The tokens that people's consent gave for tool servers. They live in memory, and for the browser session where the user has connections kept.
import { effect, signal } from "@preact/signals";
import type { OAuthStore } from "crablet";
import { keepForSession } from "./settings";

const STORAGE_KEY = "crablet.tokens";

const tokens = signal<ReadonlyMap<string, string>>(readKept());

/** One store for all connections: who has signed in once is not asked again by the next connection. */
export const tokenStore: OAuthStore = {
  get: (key) => tokens.value.get(key),
  set: (key, value) => {
    tokens.value = new Map(tokens.value).set(key, value);
  },
  delete: (key) => {
    tokens.value = new Map([...tokens.value].filter(([name]) => name !== key));
  },
};

/** Forgets what is kept for a server: the names hold its address. */
export function forgetTokens(address: string): void {
  tokens.value = new Map([...tokens.value].filter(([name]) => !name.includes(address)));
}

effect(() => {
  try {
    if (keepForSession.value) sessionStorage.setItem(STORAGE_KEY, JSON.stringify([...tokens.value]));
    else sessionStorage.removeItem(STORAGE_KEY);
  } catch {
    // A browser that forbids storage keeps nothing, which is the default anyway.
  }
});

function readKept(): ReadonlyMap<string, string> {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "[]");
    return new Map(Array.isArray(value) ? value.filter(isPair) : []);
  } catch {
    return new Map();
  }
}

function isPair(value: unknown): value is [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === "string");
}
