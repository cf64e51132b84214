/** @internal How often the agent of a session is tried to be made, and the session to be taken up, before its inputs are refused. */
export const AGENT_ATTEMPTS = 5;

/** @internal The wait behind an attempt to make the agent, counted from 1, in milliseconds. */
export const agentWait = (attempt: number): number => FIRST_AGENT_WAIT_MS * 2 ** (attempt - 1);

/**
 * When a session is tried again whose work failed, by how often the input was delivered, in milliseconds. It is tried for as long as
 * it takes: an input that was stored is worked on once the server is back.
 *
 * @internal
 */
export const failedWait = (deliveries: number): number =>
  Math.min(FIRST_FAILED_WAIT_MS * 2 ** Math.max(deliveries - 1, 0), MAX_FAILED_WAIT_MS);

const FIRST_AGENT_WAIT_MS = 500;
const FIRST_FAILED_WAIT_MS = 2_000;
const MAX_FAILED_WAIT_MS = 30_000;
