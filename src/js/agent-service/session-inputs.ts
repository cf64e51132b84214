import { CrabletError, type ErrorInfo, messageOf } from "../error.js";
import { decode, type Streams } from "./nats.js";
import { isKept, isTaken, lastState, type Taken, takenOf } from "./inputs.js";
import { parseInput, type ServiceInput, type StreamSubject } from "./protocol.js";

/** @internal An input of a session, as its worker follows it. */
export interface ReadInput {
  readonly seq: number;
  readonly input: ServiceInput;
  /** `waiting`: nobody looked at it; `given`: the session has it; `settled`: it needs not be given again. */
  state: "waiting" | "given" | "settled";
  /** The id of the message that waits in a queue of the session. */
  messageId?: string | undefined;
}

/**
 * The inputs of one session in the order of the stream, and which of them are in what is saved.
 *
 * @internal
 */
export class SessionInputs {
  readonly #streams: Streams;
  readonly #place: StreamSubject;
  readonly #before: Taken;
  #inputs: ReadInput[] = [];
  #next: number;

  constructor(streams: Streams, place: StreamSubject, before: Taken) {
    this.#streams = streams;
    this.#place = place;
    this.#before = before;
    // What was taken out of order is skipped, so what lies before it is read again.
    this.#next = before.through + 1;
  }

  /** Reads what came. What cannot be read as an input is given back with what is wrong with it. */
  async read(): Promise<{ readonly inputId: string; readonly error: ErrorInfo }[]> {
    const refused: { inputId: string; error: ErrorInfo }[] = [];
    for (;;) {
      const message = await this.#streams.next(this.#place.stream, this.#place.subject, this.#next);
      if (message === undefined) return refused;
      this.#next = message.seq + 1;
      if (isTaken(this.#before, message.seq)) continue;
      try {
        this.#inputs.push({ seq: message.seq, input: parseInput(decode(message.data)), state: "waiting" });
      } catch (thrown) {
        const inputId = `seq-${message.seq}`;
        this.#inputs.push({ seq: message.seq, input: { id: inputId, type: "abort" }, state: "settled" });
        refused.push({ inputId, error: infoOf(thrown) });
      }
    }
  }

  /** The inputs that nobody looked at, in their order. */
  waiting(): readonly ReadInput[] {
    return this.#inputs.filter(({ state }) => state === "waiting");
  }

  /** Whether an input was read. One that is read and not settled at the end waits for a run that waits for a person. */
  isRead(seq: number): boolean {
    return seq < this.#next;
  }

  /** Whether an input needs not be given again. */
  isSettled(seq: number): boolean {
    return isTaken(this.#before, seq) || this.#inputs.some((input) => input.seq === seq && input.state === "settled");
  }

  /** Settles what these lines hold, and says what is taken once they are saved. */
  keptIn(lines: readonly string[]): { readonly taken: Taken; readonly settled: readonly ReadInput[] } {
    const state = lastState(lines);
    const settled =
      state === undefined
        ? []
        : this.#inputs.filter((one) => one.state === "given" && isKept(one.input, one.messageId, lines, state));
    const isSettled = (one: ReadInput): boolean => one.state === "settled" || settled.includes(one);
    const taken = takenOf(
      this.#before,
      this.#inputs.map((one) => ({ seq: one.seq, isSettled: isSettled(one) })),
    );
    return { taken, settled };
  }

  /** What was given and is not in what is saved is to be given again. */
  giveAgain(): void {
    for (const one of this.#inputs) if (one.state === "given") one.state = "waiting";
  }

  /** Settles all that was given: the run that had it is over. */
  settleGiven(): void {
    for (const one of this.#inputs) if (one.state === "given") one.state = "settled";
  }
}

/** @internal */
export function infoOf(thrown: unknown): ErrorInfo {
  if (!CrabletError.is(thrown)) return { kind: "internal", message: messageOf(thrown), retryable: false };
  const { kind, message, retryable } = thrown;
  return { kind, message, retryable };
}
