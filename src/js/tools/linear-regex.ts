// JavaScript's own regular expressions go back and try again, and a pattern such as (a+)+$ then takes for ever; a model's
// pattern must not. Here all ways to match are followed at once, so that the time is bounded by text times pattern.

/** The most instructions of a pattern: bounds the repetitions of repetitions. */
const MAX_INSTRUCTIONS = 2_000;

/** The deepest that groups stand in each other. */
const MAX_DEPTH = 50;

type Test = (codePoint: number) => boolean;
type Assertion = "start" | "end" | "boundary" | "no-boundary";

type Node =
  | { readonly type: "character"; readonly test: Test }
  | { readonly type: "assertion"; readonly assertion: Assertion }
  | { readonly type: "sequence"; readonly nodes: readonly Node[] }
  | { readonly type: "choice"; readonly nodes: readonly Node[] }
  | { readonly type: "repeat"; readonly node: Node; readonly min: number; readonly max: number };

type Instruction =
  | { readonly type: "character"; readonly test: Test }
  | { readonly type: "assertion"; readonly assertion: Assertion }
  | { readonly type: "split"; readonly targets: number[] }
  | { readonly type: "match" };

/** Counts down the work of a search; below zero it is to be stopped. */
export interface Effort {
  left: number;
}

/** A regular expression that takes linear time: JavaScript's syntax without lookaround and backreferences. */
export class LinearRegex {
  readonly #program: Instruction[] = [];

  /** @throws Error with a message for the model when the pattern is not valid or not supported. */
  constructor(pattern: string, ignoreCase = false) {
    const node = new Parser(pattern, ignoreCase).parse();
    this.#compile(node);
    this.#emit({ type: "match" });
  }

  /** Whether some part of the text matches; `false` too when the effort is used up, which the caller sees on it. */
  matches(text: string, effort: Effort = { left: Number.POSITIVE_INFINITY }): boolean {
    const seen = new Int32Array(this.#program.length).fill(-1);
    let current: number[] = [];
    let previous = -1;
    for (let position = 0; ; ) {
      const next = text.codePointAt(position) ?? -1;
      if (this.#follow(0, current, seen, position, previous, next, effort)) return true;
      const after = position + (next > 0xffff ? 2 : 1);
      const following: number[] = [];
      effort.left -= current.length + 1;
      if (next === -1 || effort.left < 0) return false;
      const afterNext = text.codePointAt(after) ?? -1;
      for (const index of current) {
        const instruction = this.#program[index];
        if (instruction?.type !== "character" || !instruction.test(next)) continue;
        if (this.#follow(index + 1, following, seen, after, next, afterNext, effort)) return true;
      }
      current = following;
      previous = next;
      position = after;
    }
  }

  /** Adds what can be reached without a character. Says whether that is the end of the pattern. */
  #follow(
    start: number,
    into: number[],
    seen: Int32Array,
    position: number,
    before: number,
    next: number,
    effort: Effort,
  ): boolean {
    const open = [start];
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      if (seen[index] === position) continue;
      seen[index] = position;
      effort.left -= 1;
      const instruction = this.#program[index];
      if (instruction?.type === "match") return true;
      if (instruction?.type === "character") into.push(index);
      else if (instruction?.type === "split") open.push(...instruction.targets);
      else if (instruction?.type === "assertion" && holds(instruction.assertion, before, next)) open.push(index + 1);
    }
    return false;
  }

  #emit(instruction: Instruction): number {
    if (this.#program.length >= MAX_INSTRUCTIONS) throw new Error("the pattern is too large: repeat less in it");
    return this.#program.push(instruction) - 1;
  }

  #compile(node: Node): void {
    if (node.type === "character" || node.type === "assertion") this.#emit(node);
    else if (node.type === "sequence") for (const part of node.nodes) this.#compile(part);
    else if (node.type === "choice") this.#compileChoice(node.nodes);
    else this.#compileRepeat(node.node, node.min, node.max);
  }

  #compileChoice(nodes: readonly Node[]): void {
    const starts: number[] = [];
    const ends: number[][] = [];
    this.#emit({ type: "split", targets: starts });
    for (const node of nodes) {
      starts.push(this.#program.length);
      this.#compile(node);
      const end: number[] = [];
      this.#emit({ type: "split", targets: end });
      ends.push(end);
    }
    for (const end of ends) end.push(this.#program.length);
  }

  #compileRepeat(node: Node, min: number, max: number): void {
    for (let count = 0; count < min; count += 1) this.#compile(node);
    if (max === Number.POSITIVE_INFINITY) {
      const targets: number[] = [];
      const start = this.#emit({ type: "split", targets });
      targets.push(start + 1);
      this.#compile(node);
      this.#emit({ type: "split", targets: [start] });
      targets.push(this.#program.length);
      return;
    }
    const skips: number[][] = [];
    for (let count = min; count < max; count += 1) {
      const targets: number[] = [];
      targets.push(this.#emit({ type: "split", targets }) + 1);
      skips.push(targets);
      this.#compile(node);
    }
    for (const targets of skips) targets.push(this.#program.length);
  }
}

function holds(assertion: Assertion, before: number, next: number): boolean {
  if (assertion === "start") return before === -1;
  if (assertion === "end") return next === -1;
  return (isWord(before) !== isWord(next)) === (assertion === "boundary");
}

const isDigit: Test = (point) => point >= 48 && point <= 57;
const isWord: Test = (point) =>
  isDigit(point) || (point >= 65 && point <= 90) || (point >= 97 && point <= 122) || point === 95;
const isSpace: Test = (point) => point >= 0 && /\s/.test(String.fromCodePoint(point));
const not =
  (test: Test): Test =>
  (point) =>
    !test(point);

const CLASSES: Readonly<Record<string, Test>> = {
  d: isDigit,
  D: not(isDigit),
  w: isWord,
  W: not(isWord),
  s: isSpace,
  S: not(isSpace),
};
const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, 0: 0 };

class Parser {
  readonly #characters: readonly string[];
  readonly #ignoreCase: boolean;
  #position = 0;
  #depth = 0;

  constructor(pattern: string, ignoreCase: boolean) {
    this.#characters = [...pattern];
    this.#ignoreCase = ignoreCase;
  }

  parse(): Node {
    const node = this.#choice();
    if (this.#position < this.#characters.length) throw this.#invalid('there is a ")" without its "("');
    return node;
  }

  #choice(): Node {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw this.#invalid("its groups stand too deep in each other");
    const nodes = [this.#sequence()];
    while (this.#take("|")) nodes.push(this.#sequence());
    this.#depth -= 1;
    return nodes.length === 1 ? (nodes[0] as Node) : { type: "choice", nodes };
  }

  #sequence(): Node {
    const nodes: Node[] = [];
    for (let next = this.#peek(); next !== undefined && next !== "|" && next !== ")"; next = this.#peek())
      nodes.push(this.#repeated(this.#atom()));
    return { type: "sequence", nodes };
  }

  #repeated(node: Node): Node {
    const bounds = this.#bounds();
    if (bounds === undefined) return node;
    // A lazy quantifier matches the same texts.
    this.#take("?");
    const [min, max] = bounds;
    if (node.type === "assertion") throw this.#invalid("there is nothing to repeat");
    return this.#repeated({ type: "repeat", node, min, max });
  }

  #bounds(): [number, number] | undefined {
    if (this.#take("*")) return [0, Number.POSITIVE_INFINITY];
    if (this.#take("+")) return [1, Number.POSITIVE_INFINITY];
    if (this.#take("?")) return [0, 1];
    const braces = /^\{(\d{1,4})(,?)(\d{0,4})\}/.exec(
      this.#characters.slice(this.#position, this.#position + 12).join(""),
    );
    if (braces === null) return undefined;
    this.#position += braces[0].length;
    const min = Number(braces[1]);
    const max = braces[2] === "" ? min : braces[3] === "" ? Number.POSITIVE_INFINITY : Number(braces[3]);
    if (max < min) throw this.#invalid("a repetition has its numbers the wrong way round");
    return [min, max];
  }

  #atom(): Node {
    const next = this.#next();
    if (next === "(") return this.#group();
    if (next === "[") return this.#character(this.#set());
    if (next === ".") return this.#character((point) => point !== 10 && point !== 13);
    if (next === "^") return { type: "assertion", assertion: "start" };
    if (next === "$") return { type: "assertion", assertion: "end" };
    if (next === "\\") return this.#escape();
    if (next === "*" || next === "+" || next === "?")
      throw this.#invalid(`there is nothing to repeat before "${next}"`);
    return this.#literal(next.codePointAt(0) ?? 0);
  }

  #group(): Node {
    if (this.#take("?")) {
      const name = /^<[A-Za-z_]\w*>/.exec(this.#characters.slice(this.#position, this.#position + 80).join(""));
      if (name !== null) this.#position += name[0].length;
      else if (!this.#take(":")) throw this.#invalid("lookaround and flags in a group are not supported");
    }
    const node = this.#choice();
    if (!this.#take(")")) throw this.#invalid('a "(" has no ")"');
    return node;
  }

  #escape(): Node {
    const next = this.#next("a pattern cannot end with a backslash");
    if (next === "b" || next === "B")
      return { type: "assertion", assertion: next === "b" ? "boundary" : "no-boundary" };
    const test = CLASSES[next];
    return test ? this.#character(test) : this.#literal(this.#escaped(next));
  }

  /** The character that an escape stands for. */
  #escaped(letter: string): number {
    const control = CONTROLS[letter];
    if (control !== undefined) return control;
    if (letter === "x" || letter === "u") {
      const rest = this.#characters.slice(this.#position, this.#position + 10).join("");
      const hex = (letter === "x" ? /^([\da-f]{2})/i : /^([\da-f]{4})|^\{([\da-f]{1,6})\}/i).exec(rest);
      if (hex === null) throw this.#invalid(`\\${letter} needs hexadecimal digits`);
      this.#position += hex[0].length;
      return Number.parseInt(hex[1] ?? hex[2] ?? "0", 16);
    }
    if (/[1-9k]/.test(letter)) throw this.#invalid("backreferences are not supported");
    if (/[a-zA-Z]/.test(letter)) throw this.#invalid(`\\${letter} is not supported`);
    return letter.codePointAt(0) ?? 0;
  }

  #set(): Test {
    const isNegated = this.#take("^");
    const tests: Test[] = [];
    for (;;) {
      const next = this.#next('a "[" has no "]"');
      if (next === "]") break;
      const from = this.#member(next);
      if (typeof from === "number" && this.#peek() === "-" && this.#characters[this.#position + 1] !== "]") {
        this.#position += 1;
        const to = this.#member(this.#next('a "[" has no "]"'));
        if (typeof to !== "number" || to < from) throw this.#invalid("a range in [] goes backwards");
        tests.push(this.#folded((point) => point >= from && point <= to));
      } else {
        tests.push(typeof from === "number" ? this.#folded((point) => point === from) : from);
      }
    }
    const some: Test = (point) => tests.some((test) => test(point));
    return isNegated ? not(some) : some;
  }

  #member(character: string): number | Test {
    if (character !== "\\") return character.codePointAt(0) ?? 0;
    const next = this.#next("a pattern cannot end with a backslash");
    return next === "b" ? 8 : (CLASSES[next] ?? this.#escaped(next));
  }

  #literal(point: number): Node {
    return this.#character(this.#folded((other) => other === point));
  }

  #character(test: Test): Node {
    return { type: "character", test };
  }

  #folded(test: Test): Test {
    if (!this.#ignoreCase) return test;
    return (point) => {
      const text = String.fromCodePoint(point);
      return (
        test(point) || test(text.toLowerCase().codePointAt(0) ?? 0) || test(text.toUpperCase().codePointAt(0) ?? 0)
      );
    };
  }

  #peek(): string | undefined {
    return this.#characters[this.#position];
  }

  #next(missing = "it ends too early"): string {
    const next = this.#characters[this.#position];
    if (next === undefined) throw this.#invalid(missing);
    this.#position += 1;
    return next;
  }

  #take(character: string): boolean {
    const isNext = this.#peek() === character;
    if (isNext) this.#position += 1;
    return isNext;
  }

  #invalid(why: string): Error {
    return new Error(
      `the pattern is not a regular expression this tool takes: ${why}. Leave "regex" out to search for it as it is`,
    );
  }
}
