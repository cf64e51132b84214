import type { ServiceInput } from "./protocol.js";

/**
 * Which inputs of a session are in what is saved of it, by their sequences: all up to `through`, and these beyond. It is saved
 * with each checkpoint, so that an input that is delivered again is known.
 *
 * @internal
 */
export interface Taken {
  readonly through: number;
  readonly also: readonly number[];
}

/** @internal */
export const NONE_TAKEN: Taken = { through: 0, also: [] };

/** @internal */
export const isTaken = ({ through, also }: Taken, seq: number): boolean => seq <= through || also.includes(seq);

/**
 * What is taken when these inputs were read, in order, of which some are settled.
 *
 * @internal
 */
export function takenOf(before: Taken, read: readonly { readonly seq: number; readonly isSettled: boolean }[]): Taken {
  const open = read.filter(({ isSettled }) => !isSettled).map(({ seq }) => seq);
  const settled = read.filter(({ isSettled }) => isSettled).map(({ seq }) => seq);
  const most = Math.max(before.through, ...before.also, ...settled);
  const through = open.length === 0 ? most : Math.max(before.through, Math.min(Math.min(...open) - 1, most));
  const also = [...before.also, ...settled].filter((seq) => seq > through);
  return { through, also: [...new Set(also)].sort((one, other) => one - other) };
}

/**
 * The part of a saved state that says what became of inputs, as `snapshot_format.md` of the crate describes it.
 *
 * @internal
 */
export interface SavedState {
  readonly run?: SavedRun | null;
}

/** @internal */
export interface SavedRun {
  readonly id?: string;
  readonly phase?: { readonly type?: string; readonly calls?: readonly SavedCall[] };
}

interface SavedCall {
  readonly callId?: string;
  readonly stage?: string;
  readonly session?: SavedState;
}

/** @internal The last state of these lines; `undefined` when there is none. */
export function lastState(lines: readonly string[]): SavedState | undefined {
  for (const line of lines.toReversed()) {
    const entry = entryOf(line);
    if (entry?.type === "state") return entry as SavedState;
  }
  return undefined;
}

/** @internal An entry whose JSON has line feeds of its own is written as a text. */
export function entryOf(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    const entry: unknown = typeof value === "string" ? JSON.parse(value) : value;
    return typeof entry === "object" && entry !== null ? (entry as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether a checkpoint has an input that was given to the session, so that the input needs not be given again.
 *
 * @internal
 */
export function isKept(
  input: ServiceInput,
  messageId: string | undefined,
  lines: readonly string[],
  state: SavedState,
): boolean {
  const { run } = state;
  switch (input.type) {
    case "prompt":
      // Nothing is written between the end of a run and the prompt of the next but states without a run.
      return run != null && run.phase?.type !== "ending";
    case "steer":
    case "follow-up":
      if (messageId === undefined) return run != null && run.phase?.type !== "ending";
      return lines.some((line) => line.includes(JSON.stringify(messageId)));
    case "abort":
      return run == null || run.phase?.type === "ending";
    case "approve":
    case "tool-result":
      return !waits(state, input.callId, input.type === "approve" ? "awaiting-approval" : "started");
  }
}

/** Whether a call is in this stage, or one of a sub-agent. */
function waits({ run }: SavedState, callId: string, stage: string): boolean {
  return (run?.phase?.calls ?? []).some(
    (call) =>
      (call.callId === callId && call.stage === stage) ||
      (call.session !== undefined && waits(call.session, callId, stage)),
  );
}
