import type { Core, CoreMcp, CoreServer, CoreServerEvent, CoreServerFunctions, Settle } from "./core.js";
import { crossing, fromCore, invalidInput } from "./error.js";
import { readHeaders } from "./headers.js";
import { toJson } from "./json.js";
import { load } from "./load.js";
import { UI_EXTENSION, UI_SETTINGS } from "./mcp-app.js";
import { answerOf, capabilitiesOf } from "./mcp-handlers.js";
import type { NativeShim } from "./mcp-native-messaging.js";
import { PortUse } from "./mcp-port.js";
import type { McpEvent, McpLogLevel, McpServerInfo, McpTool } from "./mcp-protocol.js";
import type { McpServer } from "./mcp.js";
import { notify } from "./notify.js";
import { answerAuth, authConfigOf } from "./oauth.js";
import { ownTurn } from "./own-turn.js";

/** @internal A connection in the module, and the instance that it is in. */
export interface Connection {
  readonly core: Core;
  readonly server: CoreMcp;
  readonly info: McpServerInfo;
}

/** @internal */
export async function connectServer(name: string, options: McpServer, signal?: AbortSignal): Promise<Connection> {
  signal?.throwIfAborted();
  if (options.type === "shim" && options.WebSocket === undefined && globalThis.WebSocket === undefined) {
    throw invalidInput(
      "mcp.shim() needs a WebSocket, and this platform has none (Node has one from 22 on). Use a newer Node, or " +
        'import { WebSocket } from "ws"; mcp.shim({ server, token, WebSocket })',
    );
  }
  const core = await load();
  const config = toJson(configOf(name, options), "the MCP server");
  const functions = functionsOf(name, options);
  const server = crossing(() => new core.McpHandle(config, functions));
  const connectPort = () => {
    if (options.type !== "port") return;
    const report = (message: string): void => functions.event(JSON.stringify({ type: "warning", message }));
    const use = new PortUse(options.port, server, report);
    functions.send = (message) => (message === undefined ? use.end() : use.send(message));
  };
  try {
    connectPort();
    const info = infoOf(JSON.parse(await settled(core, signal, (...settle) => server.ready(...settle))));
    return { core, server, info };
  } catch (thrown) {
    server.free();
    // The module knows of sockets only.
    throw (options as Partial<NativeShim>).failure?.() ?? thrown;
  }
}

/** @internal */
export async function closeConnection({ core, server }: Connection): Promise<void> {
  // With its instance a connection is gone too.
  if (core.life.error !== undefined) return;
  await settled(core, undefined, (...settle) => server.close(...settle));
  server.free();
}

/** @internal */
export async function listOf<Entry>(
  { core, server }: Connection,
  of: "tools" | "agentTools" | "resources" | "resourceTemplates" | "prompts",
  options: { readonly signal?: AbortSignal; readonly refresh?: boolean } = {},
): Promise<Entry[]> {
  const { signal, refresh = false } = options;
  return JSON.parse(await settled(core, signal, (...settle) => server.list(of, refresh, ...settle)));
}

/** @internal The tools with the names that a model calls them by. */
export async function agentToolsOf(connection: Connection, signal?: AbortSignal): Promise<AgentTool[]> {
  const named = await listOf<[string, McpTool]>(connection, "agentTools", signal && { signal });
  return named.map(([toolName, tool]) => ({ ...tool, toolName }));
}

/** A tool of a server, as an agent has it. */
export interface AgentTool extends McpTool {
  /** The name that the model calls it by, and that events tell of. */
  readonly toolName: string;
}

/** @internal A call of the module that takes time, as a promise that a signal can reject. */
export async function settled(
  { CancelHandle, life }: Core,
  signal: AbortSignal | undefined,
  call: (...settle: Settle) => void,
): Promise<string> {
  signal?.throwIfAborted();
  const cancel = new CancelHandle();
  const abort = (): void => cancel.cancel();
  signal?.addEventListener("abort", abort, { once: true });
  let forget = (): void => {};
  try {
    return await new Promise<string>((resolve, reject) => {
      forget = life.onEnd(reject);
      call(cancel, resolve, reject);
    });
  } catch (thrown) {
    signal?.throwIfAborted();
    throw fromCore(thrown);
  } finally {
    forget();
    signal?.removeEventListener("abort", abort);
    cancel.free();
  }
}

function functionsOf(name: string, server: McpServer): CoreServerFunctions {
  return {
    fetch: server.type === "http" ? server.fetch : undefined,
    WebSocket: server.type === "shim" ? (server.WebSocket as typeof WebSocket | undefined) : undefined,
    request(message) {
      const controller = new AbortController();
      const answer = async (): Promise<string | undefined> => {
        if (server.type !== "custom") return undefined;
        await ownTurn();
        const reply = await server.request(JSON.parse(message), { signal: controller.signal });
        return reply === undefined ? undefined : toJson(reply, "the answer of the MCP server");
      };
      return { result: answer(), cancel: () => controller.abort() };
    },
    send() {},
    answer: (method, params) => answerOf(name, server, method, params),
    auth: (question) => answerAuth(server.type === "http" ? server.auth : undefined, question),
    event(text) {
      const { onEvent } = server;
      // In a turn of its own: an observer may use the connection.
      if (onEvent !== undefined) queueMicrotask(() => notify("onEvent", () => onEvent(eventOf(JSON.parse(text)))));
    },
  };
}

function configOf(name: string, server: McpServer): Record<string, unknown> {
  const common = {
    name,
    type: server.type,
    era: server.era,
    knownEra: server.knownEra,
    client: server.client,
    capabilities: { ...capabilitiesOf(server), ...extensionsOf(server) },
  };
  switch (server.type) {
    case "http":
      return {
        ...common,
        url: server.url,
        headers: [...readHeaders(server.headers)],
        auth: server.auth && authConfigOf(server.auth),
      };
    case "shim":
      return { ...common, url: server.url, server: server.server, token: server.token, resume: server.resume };
    case "custom":
    case "port":
      return common;
    default:
      throw invalidInput("this is no MCP server: make one by a function of mcp, such as mcp.http(url)");
  }
}

function extensionsOf({ apps, extensions }: McpServer): Record<string, unknown> {
  const all = { ...(apps && { [UI_EXTENSION]: UI_SETTINGS }), ...extensions };
  return Object.keys(all).length > 0 ? { extensions: all } : {};
}

function infoOf({ info, capabilities, instructions }: CoreServer): McpServerInfo {
  return { ...info, ...(capabilities && { capabilities }), ...(instructions !== undefined && { instructions }) };
}

function eventOf(event: CoreServerEvent): McpEvent {
  switch (event.type) {
    case "connected":
      return { ...event, server: infoOf(event.server) };
    case "notification":
      return notificationOf(event.method, event.params);
    default:
      return event;
  }
}

function notificationOf(method: string, params: Readonly<Record<string, unknown>> | undefined): McpEvent {
  switch (method) {
    case "notifications/tools/list_changed":
      return { type: "tools-changed" };
    case "notifications/prompts/list_changed":
      return { type: "prompts-changed" };
    case "notifications/resources/list_changed":
      return { type: "resources-changed" };
    case "notifications/resources/updated":
      return { type: "resource-updated", uri: String(params?.uri) };
    case "notifications/message": {
      const { level, logger, data } = params ?? {};
      return {
        type: "log",
        level: level as McpLogLevel,
        ...(typeof logger === "string" && { logger }),
        data,
      };
    }
    default:
      return { type: "notification", method, ...(params !== undefined && { params }) };
  }
}
