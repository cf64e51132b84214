// A store that fails: the package's file store, and whatever happens between it and the session. What goes wrong in which call
// the harness decides (`pkg-tests/faults/src/store_damage.rs`).
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileStore } from "crablet/stores";
import { wait } from "./clock.mjs";
import { ask } from "./harness.mjs";

/** The file store of one script, under faults. */
export class FaultyStore {
  /** Whether a call has been kept waiting since the conversation was opened. */
  hasStalled = false;
  /** Whether what was read last was damaged: such a session is only looked at. */
  isDamaged = false;
  #inner;
  #folder;
  #seed;
  #isOver = false;
  /** How many calls have stalled, and how many of them somebody has noticed. */
  #stalls = 0;
  #noticed = 0;
  #waiting = [];
  /** What never answers waits for this. */
  #over;
  #release;

  constructor(folder, seed) {
    this.#inner = fileStore(folder);
    this.#folder = folder;
    this.#seed = seed;
    this.#over = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  /** Resolves when a call never answers that nobody has noticed. */
  async stalled() {
    if (this.#stalls === this.#noticed) await new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Says that the calls that never answer were noticed. */
  notice() {
    this.#noticed = this.#stalls;
  }

  /** Ends what does not answer, as every connection ends at last, and takes no further call. */
  end() {
    this.#isOver = true;
    this.#release();
  }

  async read(id) {
    this.#mustBeOpen();
    this.hasStalled = false;
    this.isDamaged = false;
    this.notice();
    const stored = await this.#inner.read(id);
    const text = stored?.entries.map((entry) => `${entry}\n`).join("");
    const fault = await ask("read", { seed: this.#seed, text });
    if (fault === null) return stored;
    await this.#happened(fault);
    switch (fault.act) {
      case "failed":
        throw gone();
      case "damaged":
        this.isDamaged = true;
        return { version: stored.version, entries: fault.text.split("\n").filter((entry) => entry !== "") };
      case "unanswered":
        return this.#stall();
      default:
        throw new Error(`a read cannot be ${fault.act}`);
    }
  }

  append(id, expected, entries) {
    return this.#write(id, expected, entries, () => this.#inner.append(id, expected, entries));
  }

  replace(id, expected, base) {
    return this.#write(id, expected, base, () => this.#inner.replace(id, expected, base));
  }

  delete(id) {
    return this.#inner.delete(id);
  }

  list() {
    return this.#inner.list();
  }

  async #write(id, expected, entries, write) {
    this.#mustBeOpen();
    const bytes = Buffer.from(entries.map((entry) => `${entry}\n`).join(""));
    const fault = await ask("write", { seed: this.#seed, expected, length: bytes.length });
    if (fault === null) return write();
    switch (fault.act) {
      case "not-written":
        break;
      case "unacknowledged":
        await write().catch(() => {});
        break;
      case "half-written": {
        const unfinished = join(this.#folder, id, `.${expected + 1}-${crypto.randomUUID()}`);
        // There may be no folder yet.
        await writeFile(unfinished, bytes.subarray(0, fault.bytes)).catch(() => {});
        break;
      }
      case "twice": {
        const [first, second] = [await outcome(write()), await outcome(write())];
        await this.#happened(fault);
        if (second.error === undefined) throw new Error("the store took a second write of the same version");
        const { error, value } = fault.isFirst ? first : second;
        if (error !== undefined) throw error;
        return value;
      }
      case "another-version": {
        const version = await write();
        await this.#happened(fault);
        return version + fault.further;
      }
      case "unanswered":
        if (fault.isWritten) await write().catch(() => {});
        await this.#happened(fault);
        return this.#stall();
      case "late":
        await this.#happened(fault);
        await wait(fault.milliseconds);
        return write();
      default:
        throw new Error(`a write cannot be ${fault.act}`);
    }
    await this.#happened(fault);
    throw gone();
  }

  #happened({ mishap }) {
    return ask("happened", { seed: this.#seed, mishap });
  }

  async #stall() {
    this.hasStalled = true;
    this.#stalls += 1;
    for (const resolve of this.#waiting.splice(0)) resolve();
    await this.#over;
    throw gone();
  }

  #mustBeOpen() {
    if (this.#isOver) throw gone();
  }
}

const gone = () => new Error("the disk is gone");

async function outcome(promise) {
  try {
    return { value: await promise };
  } catch (error) {
    return { error };
  }
}
