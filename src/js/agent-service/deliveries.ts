import type { JetStreamMessage } from "./nats.js";
import { failedWait } from "./retry.js";
import type { SessionInputs } from "./session-inputs.js";

/**
 * How the work on a session ended. `done`: nothing is left to do; `lost`: another worker goes on; `handed-over`: the service is
 * stopped; `failed`: the session could not be saved, and is to be tried again.
 *
 * @internal
 */
export type WorkEnd = "done" | "lost" | "handed-over" | "failed";

/**
 * The messages of the consumer that the work on a session holds.
 *
 * @internal
 */
export class Deliveries {
  readonly #messages: JetStreamMessage[] = [];

  hold(message: JetStreamMessage): void {
    this.#messages.push(message);
  }

  /** Says to the server that they are being worked on. */
  working(): void {
    for (const message of this.#messages) message.working();
  }

  /**
   * Answers them: what is settled is not delivered again. With an `alarmMs` one of them comes back after that time, since a run waits
   * that long for a person. What was not read yet has no `inputs`.
   */
  settle(end: WorkEnd, inputs: SessionInputs | undefined, alarmMs: number | undefined): void {
    let alarm = alarmMs;
    for (const message of this.#messages.splice(0)) {
      if (end === "lost") continue;
      if (end !== "done") message.nak(end === "failed" ? failedWait(message.info.deliveryCount) : 0);
      else if (inputs?.isSettled(message.seq) !== true) message.nak(inputs?.isRead(message.seq) ? SUSPENDED_MS : 0);
      else if (alarm === undefined) message.ack();
      else {
        // It comes back when nobody has decided in time.
        message.nak(alarm);
        alarm = undefined;
      }
    }
  }
}

/** When a prompt is looked at again that waits for a run that waits for a person. */
const SUSPENDED_MS = 30_000;
