import type { Piece } from "./event-log.js";

/** The most messages that a reader may be behind; one that is slower is cut off. */
const MAX_WAITING = 1_024;
/** The most characters that a reader may be behind: two of the largest messages. */
const MAX_WAITING_LENGTH = 32 * 1024 * 1024;

/** A request or a stream of a client, from its arrival to the end of its response. */
export class Exchange {
  /** Its name. A stream that is taken up again keeps the name it had. */
  number: number;
  /** Whether the client has seen the start of an event stream. */
  isStream = false;
  readonly #pieces: Piece[] = [];
  readonly #left: (() => void)[] = [];
  #length = 0;
  #isClosed = false;
  #hasLeft = false;
  #wake: (() => void) | undefined;

  /** The signal aborts when the client is gone. */
  constructor(number: number, signal: AbortSignal) {
    this.number = number;
    const leave = () => this.leave();
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  }

  /** Whether nobody takes anything any more. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Gives a message; `false` when nobody takes it, or what was given before is not taken fast enough. */
  give(piece: Piece): boolean {
    // One message always goes, however large.
    const isFull = this.#length > 0 && this.#length + piece.text.length > MAX_WAITING_LENGTH;
    if (this.#isClosed || isFull || this.#pieces.length >= MAX_WAITING) return false;
    this.#pieces.push(piece);
    this.#length += piece.text.length;
    this.#wake?.();
    return true;
  }

  /** Settles when there is a message, or when none follows. */
  async arrival(): Promise<void> {
    if (this.#pieces.length > 0 || this.#isClosed) return;
    await new Promise<void>((wake) => {
      this.#wake = wake;
    });
  }

  /** The next message, which stays. */
  peek(): Piece | undefined {
    return this.#pieces[0];
  }

  take(): Piece | undefined {
    const piece = this.#pieces.shift();
    this.#length -= piece?.text.length ?? 0;
    return piece;
  }

  /** Nothing follows what was given. */
  finish(): void {
    this.#isClosed = true;
    this.#wake?.();
  }

  /** The client is gone. */
  leave(): void {
    this.#hasLeft = true;
    this.finish();
    for (const left of this.#left.splice(0)) left();
  }

  /** Calls the function when the client is gone, at once if it is. */
  onLeave(left: () => void): void {
    if (this.#hasLeft) left();
    else this.#left.push(left);
  }
}
