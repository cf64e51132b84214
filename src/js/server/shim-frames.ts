// The frames of `crablet.v1` and one side's book of them, as in `crablet::mcp::transport::shim`.

/** The kinds of frames. */
export const FRAME = { proof: 1, attach: 2, hello: 3, message: 4, seen: 6, ping: 7, end: 8, gone: 9 } as const;

/** The longest message that either side takes, in bytes. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

const HEADER_BYTES = 17;

/** Numbered frames, and their bytes, that may be under way unseen. */
const WINDOW_FRAMES = 1_024;
const WINDOW_BYTES = 2 * MAX_MESSAGE_BYTES;

/** One WebSocket message. */
export interface Frame {
  readonly kind: number;
  /** 0 for frames that are not numbered. */
  readonly number: number;
  /** The last number that its sender has seen. */
  readonly seen: number;
  readonly payload: Uint8Array;
}

export function encodeFrame({ kind, number, seen, payload }: Frame): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEADER_BYTES + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, kind);
  view.setBigUint64(1, BigInt(number));
  view.setBigUint64(9, BigInt(seen));
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

/** The frame, or `undefined` for what is none. */
export function decodeFrame(data: unknown): Frame | undefined {
  if (!(data instanceof ArrayBuffer) || data.byteLength < HEADER_BYTES) return undefined;
  const view = new DataView(data);
  const [number, seen] = [Number(view.getBigUint64(1)), Number(view.getBigUint64(9))];
  if (!Number.isSafeInteger(number) || !Number.isSafeInteger(seen)) return undefined;
  return { kind: view.getUint8(0), number, seen, payload: new Uint8Array(data, HEADER_BYTES) };
}

/** What this side sent and the other has not seen yet, and what this side has seen. It outlives sockets. */
export class FrameBook {
  #unseen: { readonly number: number; readonly payload: Uint8Array }[] = [];
  #unseenBytes = 0;
  #sent = 0;
  #received = 0;
  #told = 0;
  #untoldBytes = 0;

  /** Whether another message may be sent now; a single one always may. */
  hasRoomFor(bytes: number): boolean {
    const hasPlace = this.#unseen.length < WINDOW_FRAMES && this.#unseenBytes + bytes <= WINDOW_BYTES;
    return this.#unseen.length === 0 || hasPlace;
  }

  /** Numbers a message and keeps it until it was seen. */
  message(payload: Uint8Array): Frame {
    this.#sent += 1;
    this.#unseen.push({ number: this.#sent, payload });
    this.#unseenBytes += payload.length;
    return { ...this.plain(FRAME.message, payload), number: this.#sent };
  }

  /** A frame outside the numbers. */
  plain(kind: number, payload: Uint8Array = new Uint8Array()): Frame {
    this.#told = this.#received;
    this.#untoldBytes = 0;
    return { kind, number: 0, seen: this.#received, payload };
  }

  /** The messages that the other side has not seen, to be sent again on a new socket. */
  unseen(): Frame[] {
    return this.#unseen.map(({ number, payload }) => ({ kind: FRAME.message, number, seen: this.#received, payload }));
  }

  /** Takes note of what the other side has seen; `false` when it cannot have. */
  otherHasSeen(number: number): boolean {
    if (number > this.#sent) return false;
    while (this.#unseen[0] !== undefined && this.#unseen[0].number <= number)
      this.#unseenBytes -= this.#unseen.shift()?.payload.length ?? 0;
    return true;
  }

  /** What a numbered frame is: the next one, one that came before, or one with others missing before it. */
  receive(number: number, bytes: number): "new" | "repeated" | "gap" {
    if (number <= this.#received) return "repeated";
    if (number !== this.#received + 1) return "gap";
    this.#received = number;
    this.#untoldBytes += bytes;
    return "new";
  }

  /** Whether the other side is to be told what was seen, since nothing went back for so long. */
  shouldTell(): boolean {
    return this.#received - this.#told >= WINDOW_FRAMES / 4 || this.#untoldBytes >= WINDOW_BYTES / 4;
  }
}
