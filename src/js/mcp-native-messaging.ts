import { fromBase64, toBase64 } from "./base64.js";
import { CrabletError, type ErrorKind, invalidInput, messageOf } from "./error.js";
import type { McpOptions, McpServer } from "./mcp.js";

/** Options of `mcp.nativeMessaging()`. */
export interface McpNativeMessagingOptions extends McpOptions {
  /** The server's name in the shim's configuration. */
  readonly server: string;
  /** The name that the shim was installed under (`crablet-shim install --host`). Default `dev.crablet.shim`. */
  readonly host?: string;
}

/** @internal A server of the type `shim` with a socket of our own. */
export interface NativeShim {
  /** Why the last socket ended before it was open. */
  failure(): CrabletError | undefined;
}

/** Native messaging as a server behind the shim: the module's WebSocket is one of this file. */
export function nativeMessaging(options: McpNativeMessagingOptions): McpServer {
  const { server, host = "dev.crablet.shim" } = options;
  if (!server) throw invalidInput("mcp.nativeMessaging() needs the name of a server in the shim's configuration");
  let failure: CrabletError | undefined;
  class Socket extends NativeSocket {
    constructor(_url: string, protocols: string[] = []) {
      failure = undefined;
      super(host, server, protocols, (error) => {
        failure = error;
      });
    }
  }
  const shim: NativeShim = { failure: () => failure };
  return { ...options, ...shim, type: "shim", url: ADDRESS, token: TOKEN, WebSocket: Socket };
}

/** As much of the contract of a `WebSocket` as the module uses. Several share the port of one host. */
class NativeSocket {
  binaryType = "arraybuffer";
  readonly bufferedAmount = 0;
  protocol = "";
  readyState = CONNECTING;
  onopen: (() => void) | null = null;
  onmessage: ((event: { readonly data: ArrayBuffer }) => void) | null = null;
  onclose: ((event: { readonly code: number; readonly reason: string }) => void) | null = null;
  onerror: (() => void) | null = null;
  readonly #fail: (error: CrabletError) => void;
  readonly #host: HostPort;
  readonly #channel: number;
  /** The beginning of a frame that comes in pieces, as base64. */
  #beginning = "";

  constructor(host: string, server: string, protocols: string[], fail: (error: CrabletError) => void) {
    this.#fail = fail;
    try {
      this.#host = HostPort.to(host);
    } catch (thrown) {
      fail(CrabletError.is(thrown) ? thrown : failureOf(host, messageOf(thrown)));
      throw thrown;
    }
    this.#channel = this.#host.open(this, server, protocols);
  }

  send(frame: Uint8Array): void {
    this.#host.post({ type: "frame", channel: this.#channel, data: toBase64(frame) });
  }

  close(): void {
    this.readyState = CLOSED;
    this.#host.close(this.#channel);
  }

  take(message: HostMessage): void {
    if (message.type === "open") {
      this.protocol = "crablet.v1";
      this.readyState = OPEN;
      this.onopen?.();
    } else if (message.type === "frame") {
      const data = this.#beginning + message.data;
      this.#beginning = message.more ? data : "";
      if (data.length > MAX_FRAME_TEXT) this.end(tooLong());
      else if (!message.more) this.onmessage?.({ data: fromBase64(data).buffer });
    } else if (message.type === "refused") {
      this.end(new CrabletError({ kind: "auth", message: `crablet-shim refused this extension: ${message.reason}` }));
    } else if (message.type === "close") this.end();
  }

  /** The host has no more for this socket. */
  end(error?: CrabletError): void {
    if (this.readyState === CLOSED) return;
    if (this.readyState === CONNECTING && error) this.#fail(error);
    this.close();
    this.onclose?.({ code: error ? 1006 : 1000, reason: error?.message ?? "" });
  }
}

/** The port to a native messaging host, which the browser starts for it. */
class HostPort {
  static readonly #open = new Map<string, HostPort>();
  readonly #name: string;
  readonly #port: RuntimePort;
  readonly #sockets = new Map<number, NativeSocket>();
  #channels = 0;

  /** The port that is open, or a new one. */
  static to(name: string): HostPort {
    const open = HostPort.#open.get(name) ?? new HostPort(name);
    HostPort.#open.set(name, open);
    return open;
  }

  private constructor(name: string) {
    const runtime = runtimeOfExtension();
    this.#name = name;
    this.#port = runtime.connectNative(name);
    this.#port.onMessage.addListener((message) => {
      if (message.type === "failed") this.#end(failureOf(name, message.reason));
      else this.#sockets.get(message.channel)?.take(message);
    });
    this.#port.onDisconnect.addListener((port) => {
      this.#end(failureOf(name, port.error?.message ?? runtime.lastError?.message ?? "it ended"));
    });
  }

  open(socket: NativeSocket, server: string, protocols: string[]): number {
    this.#channels += 1;
    this.#sockets.set(this.#channels, socket);
    this.post({ type: "open", channel: this.#channels, server, protocols });
    return this.#channels;
  }

  post(message: unknown): void {
    this.#port.postMessage(message);
  }

  close(channel: number): void {
    if (!this.#sockets.delete(channel)) return;
    if (this.#sockets.size > 0) this.post({ type: "close", channel });
    else {
      // The host ends with its port, and the servers with it.
      this.#forget();
      this.#port.disconnect();
    }
  }

  #end(error: CrabletError): void {
    this.#forget();
    const sockets = [...this.#sockets.values()];
    this.#sockets.clear();
    for (const socket of sockets) socket.end(error);
  }

  #forget(): void {
    if (HostPort.#open.get(this.#name) === this) HostPort.#open.delete(this.#name);
  }
}

/** A message of the shim, as `crablet::mcp::transport::shim` lists them. */
type HostMessage =
  | { readonly type: "open" | "close"; readonly channel: number }
  | { readonly type: "refused"; readonly channel: number; readonly reason: string }
  | { readonly type: "frame"; readonly channel: number; readonly data: string; readonly more?: boolean }
  | { readonly type: "failed"; readonly reason: string };

interface Runtime {
  readonly id?: string;
  readonly lastError?: { readonly message?: string };
  connectNative(host: string): RuntimePort;
}

interface RuntimePort {
  /** Why the port ended, in Firefox; Chrome says so in `runtime.lastError`. */
  readonly error?: { readonly message: string } | null;
  readonly onMessage: { addListener(listener: (message: HostMessage) => void): void };
  readonly onDisconnect: { addListener(listener: (port: RuntimePort) => void): void };
  postMessage(message: unknown): void;
  disconnect(): void;
}

function extensionRuntime(): Partial<Runtime> | undefined {
  const { browser, chrome } = globalThis as { browser?: { runtime?: Runtime }; chrome?: { runtime?: Runtime } };
  return browser?.runtime ?? chrome?.runtime;
}

function runtimeOfExtension(): Runtime {
  const runtime = extensionRuntime();
  if (runtime?.connectNative === undefined) {
    throw invalidInput(
      "mcp.nativeMessaging() works in the service worker and the pages of an extension, with the permission nativeMessaging " +
        "in its manifest.json; elsewhere use mcp.shim()",
    );
  }
  return runtime as Runtime;
}

/** What a browser says when a port ends, in words that help. */
function failureOf(host: string, said: string): CrabletError {
  const failed = (kind: ErrorKind, what: string, advice: string): CrabletError =>
    new CrabletError({ kind, message: `${what} (${said}); ${advice}` });
  const install = `run \`crablet-shim install --browser … --extension ${extensionRuntime()?.id} --server … --config …\``;
  if (/forbidden/i.test(said)) return failed("auth", `${host} was not installed for this extension`, install);
  // Firefox says the same of a host that this extension may not start.
  if (/not found|no such native/i.test(said))
    return failed("network", `this browser has no native messaging host ${host} for this extension`, install);
  return failed(
    "network",
    `crablet-shim ended as the native messaging host ${host}`,
    "its reasons are in the browser's own log, and `crablet-shim doctor` looks at the set-up",
  );
}

function tooLong(): CrabletError {
  return new CrabletError({ kind: "limit", message: "a frame came that is longer than any that crablet-shim sends" });
}

const CONNECTING = 0;
const OPEN = 1;
const CLOSED = 3;

/** The module wants an address of this machine. Nothing is ever sent there. */
const ADDRESS = "ws://localhost";

/** The token of those who need none, `NATIVE_MESSAGING_TOKEN` of the shim. */
const TOKEN = `native-messaging.${"A".repeat(43)}`;

/** The longest frame of the shim, 16 MiB and its head, in base64. */
const MAX_FRAME_TEXT = 23_000_000;
