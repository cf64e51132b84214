// The list of a user's conversations, in a Durable Object of its own: one list a user.
import { DurableObject } from "cloudflare:workers";
import type { Env } from "./env.js";

/** What is told of a conversation. */
export type Entry = {
  readonly name: string;
  /** How the first question begins. */
  readonly title: string;
  readonly status: "running" | "waiting" | "idle" | "failed" | "in a browser";
  /** When it was last told of, in milliseconds of Unix time. */
  readonly at: number;
};

/** The most conversations of a user. */
const MAX_CHATS = 10_000;

/** The most of a page. */
const MAX_PAGE = 100;

/**
 * Only says what there is; where a conversation is, and what is in it, its own object says. So nothing waits for this one
 * but the beginning of a conversation and whoever reads the list.
 */
export class Directory extends DurableObject<Env> {
  readonly #sql = this.ctx.storage.sql;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#sql.exec("CREATE TABLE IF NOT EXISTS chats (name TEXT PRIMARY KEY, title TEXT, status TEXT, at INTEGER)");
    this.#sql.exec("CREATE INDEX IF NOT EXISTS latest ON chats (at, name)");
  }

  /** Puts a conversation into the list, or says something newer of it. `false`: the list is full. */
  note({ name, title, status }: Omit<Entry, "at">): boolean {
    const [known] = this.#sql.exec("SELECT 1 FROM chats WHERE name = ?", name);
    if (known === undefined && this.#sql.exec<{ n: number }>("SELECT count(*) AS n FROM chats").one().n >= MAX_CHATS)
      return false;
    this.#sql.exec("INSERT OR REPLACE INTO chats VALUES (?, ?, ?, ?)", name, title, status, Date.now());
    return true;
  }

  forget(name: string): void {
    this.#sql.exec("DELETE FROM chats WHERE name = ?", name);
  }

  /**
   * A page of the list, the latest first.
   *
   * @param after `next` of the page before. What has changed since then has gone to the front and is not met again.
   */
  list(after?: string, limit = MAX_PAGE): { readonly chats: readonly Entry[]; readonly next: string | undefined } {
    const [, at = String(Number.MAX_SAFE_INTEGER), name = ""] = /^(\d{1,16})\.(.*)$/.exec(after ?? "") ?? [];
    const most = Math.max(1, Math.min(limit, MAX_PAGE));
    const chats = this.#sql
      .exec<Entry>(
        "SELECT * FROM chats WHERE (at, name) < (?, ?) ORDER BY at DESC, name DESC LIMIT ?",
        Number(at),
        name,
        most,
      )
      .toArray();
    const last = chats.at(-1);
    return { chats, next: last === undefined || chats.length < most ? undefined : `${last.at}.${last.name}` };
  }
}
