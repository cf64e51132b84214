// A browser that has a conversation and works on it by itself. The module is loaded when somebody wants that.
import { type Session, CrabletError } from "crablet";
import { conflict, type SessionStore } from "crablet/stores";
import { agentOf, modelOf, type Place, type Protocol, type Tools } from "../src/agent.js";
import type { Lent, StoreAnswer, StoreCall } from "../src/requests.js";

/** What the worker says of the place that the agent has here. */
type Given = Lent &
  Pick<Place, "mcpAsks" | "approvalTimeoutMs"> & {
    readonly protocol: Protocol;
    readonly model: string;
    readonly hasMcp: boolean;
  };

/** A conversation that this browser has. */
export interface Held {
  readonly session: Session<Tools>;
  /** Resolves when the conversation is no longer here: it was taken back. */
  readonly lost: Promise<void>;
  /** Gives it back to its object, which goes on with what is at work. */
  giveBack(): Promise<void>;
}

/** Takes a conversation out of its object and goes on with it here. */
export async function hold(name: string): Promise<Held> {
  const chat = `/chats/${encodeURIComponent(name)}`;
  const given = (await (await post(`${chat}/lend`)).json()) as Given;
  let lose = () => {};
  const lost = new Promise<void>((resolve) => {
    lose = resolve;
  });
  const call = async (asked: StoreCall): Promise<StoreAnswer> => {
    const answer = (await (await post(`${chat}/store`, asked, given.ticket)).json()) as StoreAnswer;
    if (answer.conflict) lose();
    return answer;
  };
  const agent = agentOf({
    // The worker adds the key.
    model: modelOf(given.protocol, given.model, { baseUrl: new URL("/model", location.href).href }),
    mcpUrl: given.hasMcp ? new URL("/mcp", location.href).href : undefined,
    mcpAsks: given.mcpAsks,
    approvalTimeoutMs: given.approvalTimeoutMs,
  });
  const session = await agent.open(ID, storeOf(call));
  const beat = setInterval(() => void call({ op: "renew" }).catch(() => {}), given.leaseMs / 3);
  void lost.then(() => {
    clearInterval(beat);
    session.abort();
  });
  return {
    session,
    lost,
    giveBack: async () => {
      clearInterval(beat);
      await post(`${chat}/return`, undefined, given.ticket);
      // From here on nothing of it is saved: what was at work has gone on at its object.
      session.abort();
      await agent.close();
    },
  };
}

/**
 * A store in the object that lent the conversation. So the object knows all that this browser has done, and can go on from it at
 * any time: what the browser would write then is refused, before it does anything.
 */
function storeOf(call: (asked: StoreCall) => Promise<StoreAnswer>): SessionStore {
  const write = async (op: "append" | "replace", version: number, entries: readonly string[]): Promise<number> => {
    const answer = await call({ op, version, entries });
    if (answer.version === undefined) throw conflict(ID, version);
    return answer.version;
  };
  return {
    read: async () => (await call({ op: "read" })).stored,
    append: (_id, version, entries) => write("append", version, entries),
    replace: (_id, version, entries) => write("replace", version, entries),
    delete: () => Promise.reject(unsupported()),
    list: () => Promise.resolve([ID]),
  };
}

async function post(path: string, body?: unknown, ticket = ""): Promise<Response> {
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(path, { method: "POST", headers: { ticket }, ...text });
  if (!response.ok) throw new Error(await response.text());
  return response;
}

const unsupported = (): CrabletError =>
  new CrabletError({ kind: "storage", message: "a conversation is forgotten where it lives" });

const ID = "chat";
