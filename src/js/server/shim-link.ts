// The page's end of its connection to the shim: proves itself, attaches, and comes back when a socket breaks.
import { CrabletError, messageOf } from "../error.js";
import type { WebSocketClass } from "../mcp.js";
import { decodeFrame, encodeFrame, FRAME, type Frame, FrameBook, MAX_MESSAGE_BYTES } from "./shim-frames.js";
import { notTheShim, type ShimToken, type Verify } from "./shim-proof.js";

/** From one step of opening to the next, in milliseconds; both sides are on one machine. */
const OPEN_LIMIT = 10_000;
/** Without a frame for so long the socket counts as dead; the shim pings every 20 s. */
const SILENCE_LIMIT = 60_000;
/** The first wait before another attempt; each is twice as long, up to a limit: that within the grace, or that without one. */
const FIRST_RETRY = 250;
const LONGEST_RETRY = 5_000;
const LONGEST_WAIT = 60_000;
/** The most messages that wait for the shim; of more, progress and logs are left out. */
const MAX_WAITING = 4_096;

/** What the shim says of a token that was taken back. */
const REVOKED = "the token was revoked";

/** What becomes of a connection. */
export interface LinkEvents {
  /** Another session has begun: the other side knows nothing of earlier ones. */
  begun(): void;
  /** A message came. */
  received(text: string): void;
  /** The session is over, and what was at work in it. */
  ended(): void;
  /** The connection stands, is waited for, or is over for good. */
  changed(status: "connecting" | "connected" | "waiting" | "closed", error?: CrabletError): void;
}

/** Where the shim is, and by what it is reached. */
export interface ShimAddress {
  readonly url: string;
  /** The host and port of the address. */
  readonly authority: string;
  readonly token: ShimToken;
  readonly WebSocket: WebSocketClass;
}

/** The connection. It is tried again until it is closed, or the token is taken back. */
export class ShimLink {
  readonly #url: string;
  readonly #authority: string;
  readonly #token: ShimToken;
  readonly #WebSocket: typeof globalThis.WebSocket;
  readonly #events: LinkEvents;
  #socket: WebSocket | undefined;
  #phase: "proving" | "attaching" | "attached" | undefined;
  #verify: Verify | undefined;
  #book: FrameBook | undefined;
  #resume: string | undefined;
  #graceMs = 0;
  #graceEnds: number | undefined;
  #attempts = 0;
  #waiting: Uint8Array[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor({ url, authority, token, WebSocket }: ShimAddress, events: LinkEvents) {
    this.#url = url;
    this.#authority = authority;
    this.#token = token;
    this.#WebSocket = WebSocket as typeof globalThis.WebSocket;
    this.#events = events;
    void this.#open();
  }

  /** Sends a message once there is room for it; `false` when it is too long. What no session is there for is dropped. */
  send(text: string): boolean {
    if (this.#book === undefined) return true;
    const payload = new TextEncoder().encode(text);
    if (payload.length > MAX_MESSAGE_BYTES) return false;
    this.#waiting.push(payload);
    this.#flush();
    return true;
  }

  /** Whether so much waits that what can be left out should be. */
  get isFull(): boolean {
    return this.#waiting.length >= MAX_WAITING;
  }

  /** Ends the session and the connection. */
  close(): void {
    if (this.#isClosed) return;
    if (this.#phase === "attached" && this.#book !== undefined) this.#write(this.#book.plain(FRAME.end));
    this.#over();
  }

  async #open(): Promise<void> {
    this.#events.changed("connecting");
    this.#wait(OPEN_LIMIT, () => this.#lost("it did not open in time"));
    try {
      const { subprotocol, verify } = await this.#token.prove(this.#authority, globalThis.origin ?? "");
      if (this.#isClosed) return;
      this.#verify = verify;
      const socket = new this.#WebSocket(`${this.#url}/expose`, ["crablet.v1", subprotocol]);
      socket.binaryType = "arraybuffer";
      this.#socket = socket;
      this.#phase = "proving";
      const current = (handle: () => void) => () => {
        if (this.#socket === socket) handle();
      };
      socket.onmessage = ({ data }) => current(() => this.#take(data))();
      socket.onclose = current(() => this.#lost("the socket did not open, or was closed"));
      socket.onerror = () => undefined;
    } catch (thrown) {
      this.#lost(messageOf(thrown));
    }
  }

  #take(data: unknown): void {
    const frame = decodeFrame(data);
    if (frame === undefined) this.#failed("something came that is no frame");
    else if (this.#phase === "proving") void this.#prove(frame);
    else if (this.#phase === "attaching") this.#attach(frame);
    else this.#takeAttached(frame);
  }

  async #prove(frame: Frame): Promise<void> {
    const socket = this.#socket;
    const isShim = frame.kind === FRAME.proof && (await this.#verify?.(textOf(frame))) === true;
    if (this.#socket !== socket) return;
    if (!isShim) {
      this.#over(notTheShim(this.#authority));
      return;
    }
    this.#phase = "attaching";
    this.#wait(OPEN_LIMIT, () => this.#lost("it did not answer in time"));
    const wish = { ...(this.#resume !== undefined && { resume: this.#resume }), continues: this.#book !== undefined };
    const payload = new TextEncoder().encode(JSON.stringify(wish));
    this.#write({ kind: FRAME.attach, number: 0, seen: this.#book?.plain(FRAME.seen).seen ?? 0, payload });
  }

  #attach(frame: Frame): void {
    if (frame.kind === FRAME.gone) this.#gone(textOf(frame));
    else if (frame.kind === FRAME.hello) this.#attached(frame);
  }

  #attached(frame: Frame): void {
    const hello = JSON.parse(textOf(frame)) as { readonly resume: string; readonly graceMs?: number };
    const isNew = this.#book === undefined;
    this.#book ??= new FrameBook();
    if (!this.#book.otherHasSeen(frame.seen)) {
      this.#failed("it has seen what was never sent");
      return;
    }
    this.#resume = hello.resume;
    this.#graceMs = hello.graceMs ?? 0;
    this.#graceEnds = undefined;
    this.#attempts = 0;
    this.#phase = "attached";
    this.#listen();
    for (const unseen of this.#book.unseen()) this.#write(unseen);
    if (isNew) this.#events.begun();
    this.#events.changed("connected");
    this.#flush();
  }

  #takeAttached(frame: Frame): void {
    const book = this.#book;
    if (book === undefined) return;
    this.#listen();
    const receipt = frame.number > 0 ? book.receive(frame.number, frame.payload.length) : "repeated";
    if (!book.otherHasSeen(frame.seen) || receipt === "gap") {
      this.#failed("frames are missing");
      return;
    }
    if (frame.kind === FRAME.gone) {
      this.#gone(textOf(frame));
      return;
    }
    if (frame.kind === FRAME.ping) this.#write(book.plain(FRAME.seen));
    if (frame.kind === FRAME.message && receipt === "new") this.#events.received(textOf(frame));
    this.#flush();
    if (this.#book === book && book.shouldTell()) this.#write(book.plain(FRAME.seen));
  }

  #flush(): void {
    while (this.#phase === "attached" && this.#waiting[0] !== undefined) {
      if (this.#book?.hasRoomFor(this.#waiting[0].length) !== true) return;
      this.#write(this.#book.message(this.#waiting[0]));
      this.#waiting.shift();
    }
  }

  #write(frame: Frame): void {
    // One that is closing is noticed when it is closed.
    if (this.#socket?.readyState === 1) this.#socket.send(encodeFrame(frame));
  }

  /** The shim has nothing to attach to, or no longer. */
  #gone(reason: string): void {
    this.#forget();
    if (reason === REVOKED) this.#over(new CrabletError({ kind: "auth", message: "the user took the token back" }));
    else this.#lost(reason);
  }

  /** Something is wrong with what the other side sends: the session cannot go on. */
  #failed(reason: string): void {
    this.#forget();
    this.#lost(reason);
  }

  /** The socket is gone: back to the session while the grace lasts, then to a new one. */
  #lost(reason: string): void {
    this.#drop();
    if (this.#isClosed) return;
    const now = Date.now();
    if (this.#book !== undefined) {
      this.#graceEnds ??= now + this.#graceMs;
      if (now >= this.#graceEnds) this.#forget();
    }
    const longest = this.#book === undefined ? LONGEST_WAIT : LONGEST_RETRY;
    const full = Math.min(FIRST_RETRY * 2 ** Math.min(this.#attempts, 16), longest);
    this.#attempts += 1;
    this.#wait(full / 2 + (full / 2) * Math.random(), () => void this.#open());
    const message =
      `no connection to crablet-shim at ${this.#authority} (${reason}); it is tried again. If it runs, its log says ` +
      "whether it refused the token or the page, and a browser may ask for access to this device";
    this.#events.changed("waiting", new CrabletError({ kind: "network", message, retryable: true }));
  }

  /** What belongs to the session is over. */
  #forget(): void {
    if (this.#book === undefined) return;
    this.#book = undefined;
    this.#resume = undefined;
    this.#graceEnds = undefined;
    this.#waiting = [];
    this.#events.ended();
  }

  #over(error?: CrabletError): void {
    this.#isClosed = true;
    this.#drop();
    this.#forget();
    this.#events.changed("closed", error);
  }

  #drop(): void {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = undefined;
    this.#phase = undefined;
    socket?.close();
  }

  #listen(): void {
    this.#wait(SILENCE_LIMIT, () => this.#lost("nothing came for a minute"));
  }

  #wait(milliseconds: number, then: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(then, milliseconds);
  }
}

function textOf({ payload }: Frame): string {
  return new TextDecoder().decode(payload);
}
