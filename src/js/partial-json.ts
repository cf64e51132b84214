/**
 * JSON that is still being written, read as it comes: each character once.
 *
 * What is certain is shown: open texts, objects and lists end where the text ends; a number or a word that could still
 * become another is left out, and so is a member without its value. What comes before the first brace, such as a fence, is
 * skipped.
 *
 * @internal
 */
export class PartialJson {
  readonly #open: Frame[] = [];
  #state: State = "before";
  #root: unknown;
  /** A text, number or word that is being written. */
  #token = "";
  /** What follows a backslash, up to the six characters of `\uXXXX`. */
  #escape = "";
  #isKey = false;

  /** Whether nothing that could be read has come. */
  get isEmpty(): boolean {
    return this.#open.length === 0 && this.#root === undefined;
  }

  push(text: string): void {
    let index = 0;
    while (index < text.length && this.#state !== "failed" && this.#state !== "done") {
      if (this.#state === "text" && this.#escape === "") {
        const end = indexOfEnd(text, index);
        this.#token += text.slice(index, end);
        index = end;
        if (index === text.length) return;
      }
      this.#character(text[index] as string);
      index += 1;
    }
  }

  /**
   * The value so far; `undefined` before it begins, or when it is no JSON. It never changes: finished parts are shared with
   * later values, and what is open is copied, so that asking costs as much as the open objects and lists have members.
   */
  get value(): unknown {
    if (this.#state === "failed") return undefined;
    let inner = this.#state === "text" && !this.#isKey ? this.#token : MISSING;
    for (let depth = this.#open.length - 1; depth >= 0; depth -= 1) {
      const { list, members, key } = this.#open[depth] as Frame;
      if (list !== undefined) inner = inner === MISSING ? [...list] : [...list, inner];
      else inner = inner === MISSING ? { ...members } : withMember({ ...members }, key, inner);
    }
    return inner === MISSING ? this.#root : inner;
  }

  #character(character: string): void {
    switch (this.#state) {
      case "before":
        if (character === "{" || character === "[") this.#begin(character);
        break;
      case "text":
        this.#ofText(character);
        break;
      case "scalar":
        if (/[,\]}\s]/.test(character)) {
          this.#scalar();
          if ((this.#state as State) !== "failed") this.#between(character);
        } else this.#token += character;
        break;
      default:
        this.#between(character);
    }
  }

  #between(character: string): void {
    if (/\s/.test(character)) return;
    const frame = this.#open.at(-1);
    if (this.#state === "value" && /["{[\-0-9tfn]/.test(character)) this.#begin(character);
    else if (this.#state === "key" && character === '"') this.#begin(character, true);
    else if (this.#state === "colon" && character === ":") this.#state = "value";
    else if (this.#state === "next" && character === ",") this.#state = frame?.list === undefined ? "key" : "value";
    else if (character === "}" && frame?.list === undefined && (this.#state === "next" || this.#state === "key"))
      this.#close();
    else if (character === "]" && frame?.list !== undefined && (this.#state === "next" || this.#state === "value"))
      this.#close();
    else this.#state = "failed";
  }

  #begin(character: string, isKey = false): void {
    if (character === "{" || character === "[") {
      if (this.#open.length === MAX_DEPTH) {
        this.#state = "failed";
        return;
      }
      this.#open.push(
        character === "[" ? { list: [], members: {}, key: "" } : { list: undefined, members: {}, key: "" },
      );
      this.#state = character === "{" ? "key" : "value";
      return;
    }
    this.#isKey = isKey;
    this.#token = character === '"' ? "" : character;
    this.#state = character === '"' ? "text" : "scalar";
  }

  #ofText(character: string): void {
    if (this.#escape !== "") {
      this.#escape += character;
      if (this.#escape.startsWith("\\u") && this.#escape.length < 6) return;
      try {
        this.#token += JSON.parse(`"${this.#escape}"`) as string;
      } catch {
        this.#state = "failed";
      }
      this.#escape = "";
    } else if (character === "\\") this.#escape = character;
    else if (this.#isKey) {
      const frame = this.#open.at(-1);
      if (frame !== undefined) frame.key = this.#token;
      this.#state = "colon";
    } else this.#add(this.#token);
  }

  #scalar(): void {
    try {
      this.#add(JSON.parse(this.#token));
    } catch {
      this.#state = "failed";
    }
  }

  #add(value: unknown): void {
    const frame = this.#open.at(-1);
    this.#state = "next";
    if (frame === undefined) {
      this.#root = value;
      this.#state = "done";
    } else if (frame.list !== undefined) frame.list.push(value);
    else withMember(frame.members, frame.key, value);
  }

  #close(): void {
    const frame = this.#open.pop();
    this.#add(frame?.list ?? frame?.members);
  }
}

type State = "before" | "value" | "key" | "colon" | "next" | "text" | "scalar" | "done" | "failed";

/** An object or list that is open. Never handed out, so that it may grow. */
interface Frame {
  readonly list: unknown[] | undefined;
  readonly members: Record<string, unknown>;
  /** The member that is being written. */
  key: string;
}

const MISSING: unknown = Symbol("missing");

/** The deepest nesting; the same as in the module. */
const MAX_DEPTH = 128;

function indexOfEnd(text: string, from: number): number {
  for (let index = from; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 0x22 || code === 0x5c) return index;
  }
  return text.length;
}

/** As `JSON.parse` does it, also for a member called `__proto__`. */
function withMember(members: Record<string, unknown>, key: string, value: unknown): Record<string, unknown> {
  Object.defineProperty(members, key, { value, writable: true, enumerable: true, configurable: true });
  return members;
}
