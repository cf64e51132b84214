import { CrabletError, invalidInput } from "../error.js";
import type { OAuthConsent } from "../oauth.js";
import type { MaybePromise } from "../tool.js";

/** Options of `loopback()`. */
export interface LoopbackOptions {
  /**
   * Shows the page to the person. Default: prints its address to the error output. To open a browser, pass the address as an
   * argument of its own and never as part of a shell's command line.
   */
  readonly open?: (url: URL) => MaybePromise<unknown>;
  /** The port to listen on. Default: any that is free; an authorization server that compares ports needs a fixed one. */
  readonly port?: number;
  /** What the browser shows at the end. */
  readonly message?: string;
}

/** The part of `node:http` that is used. */
interface Http {
  createServer(handler: (request: { url?: string }, response: Response) => void): Server;
}

interface Response {
  writeHead(status: number, headers: Record<string, string>): void;
  end(text: string): void;
}

interface Server {
  listen(port: number, host: string): void;
  close(): void;
  address(): { port: number } | string | null;
  once(event: "listening", listener: () => void): void;
  once(event: "error", listener: (error: Error) => void): void;
}

/** The path that people are sent back to. */
const PATH = "/callback";

/**
 * Asks in the browser of whoever runs this program in Node, Deno or Bun, and receives the answer on a port of this machine
 * (RFC 8252, section 7.3), which is open only meanwhile.
 */
export function loopback(options: LoopbackOptions = {}): OAuthConsent {
  const { open = (url: URL) => console.error(`Open this page to go on: ${url.href}`), port = 0 } = options;
  const { message = "Done. You can close this page." } = options;
  let receiver: Receiver | undefined;
  return {
    async redirectUrl() {
      receiver?.close();
      receiver = await Receiver.listen(port, message);
      return receiver.url;
    },
    async authorize(url, { signal }) {
      const receiving = receiver;
      if (receiving === undefined) throw invalidInput("loopback() is asked for its redirectUrl first");
      receiver = undefined;
      receiving.state = url.searchParams.get("state");
      const abort = (): void => receiving.fail(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      try {
        await open(url);
        return await receiving.callback;
      } finally {
        signal.removeEventListener("abort", abort);
        receiving.close();
      }
    },
  };
}

/** A server that waits for one request. */
class Receiver {
  readonly callback: Promise<string>;
  readonly #server: Server;
  #received: (callback: string) => void = () => {};
  fail: (reason: unknown) => void = () => {};
  url = "";
  /** What the answer must repeat: others can reach the port too. */
  state: string | null = null;

  private constructor(http: Http, message: string) {
    this.callback = new Promise((resolve, reject) => {
      this.#received = resolve;
      this.fail = reject;
    });
    // Whoever waits hears of a failure; that nobody waits is no mistake.
    this.callback.catch(() => {});
    this.#server = http.createServer((request, response) => {
      const url = new URL(request.url ?? "/", this.url);
      const state = url.searchParams.get("state");
      const isCallback = url.pathname === PATH && state !== null && state === this.state;
      response.writeHead(isCallback ? 200 : 404, { "content-type": "text/plain; charset=utf-8", connection: "close" });
      response.end(isCallback ? message : "There is nothing here.");
      if (isCallback) this.#received(url.href);
    });
  }

  static async listen(port: number, message: string): Promise<Receiver> {
    const receiver = new Receiver(nodeHttp(), message);
    const server = receiver.#server;
    await new Promise<void>((resolve, reject) => {
      server.once("listening", resolve);
      server.once("error", ({ message }) => {
        reject(
          new CrabletError({ kind: "auth", message: `there is no port to receive the authorization on: ${message}` }),
        );
      });
      server.listen(port, "127.0.0.1");
    });
    const address = server.address();
    receiver.url = `http://127.0.0.1:${typeof address === "object" ? address?.port : port}${PATH}`;
    return receiver;
  }

  close(): void {
    this.#server.close();
  }
}

/** `node:http` without an import, which bundlers for browsers would stumble over. */
function nodeHttp(): Http {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } };
  const http = process?.getBuiltinModule?.("node:http");
  if (http) return http as Http;
  throw invalidInput("loopback() needs a platform that can listen on a port: Node, Deno or Bun");
}
