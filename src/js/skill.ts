import { CrabletError, invalidInput } from "./error.js";
import type { AgentOptions } from "./options.js";
import { type MaybePromise, type Tool, type ToolSet, tool } from "./tool.js";

/** A text that says how something is done, which the model reads when it needs it. */
export interface Skill {
  /** What the model asks for it by. */
  readonly name: string;
  /** When to read it, for the model. */
  readonly description: string;
  /** The text, or a function that gets it: called when the model first asks, and again only after it failed. */
  readonly content: string | (() => MaybePromise<string>);
  /** Further texts that the skill refers to, by the names it refers to them by. */
  readonly files?: Readonly<Record<string, string | (() => MaybePromise<string>)>>;
}

/**
 * A skill of the text of a `SKILL.md`, which begins with its name and description between lines of `---`. Bundlers import
 * such a file as text: `import review from "./review/SKILL.md?raw"` in Vite, with a `text` loader elsewhere.
 *
 * @throws CrabletError `invalid-input` when the text has no name or no description.
 */
export function skill(text: string, files: NonNullable<Skill["files"]> = {}): Skill {
  const match = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)([\s\S]*)$/.exec(text);
  const { name, description } = fields(match?.[1] ?? "");
  if (match === null || !name || !description)
    throw invalidInput("a skill begins with a line of ---, a name: and a description:, and another line of ---");
  return { name, description, content: (match[2] ?? "").trim(), files };
}

/**
 * A skill whose text is fetched when the model asks for it. The name and the description are said here, since the model is
 * told of them before. Only its text is read: its front matter, if it has one, is left out.
 */
export function skillFromUrl(
  url: string | URL,
  about: { readonly name: string; readonly description: string; readonly fetch?: typeof fetch },
): Skill {
  const { name, description } = about;
  const get = about.fetch ?? globalThis.fetch;
  const content = async (): Promise<string> => {
    const response = await get(String(url));
    if (!response.ok)
      throw new CrabletError({ kind: "network", message: `the skill "${name}" was answered with ${response.status}` });
    const text = await response.text();
    return text.replace(/^\uFEFF?---\r?\n[\s\S]*?\r?\n---[ \t]*(?:\r?\n|$)/, "").trim();
  };
  return { name, description, content };
}

/** @internal The options with the skills in the instructions and in a tool. */
export function withSkills<T extends ToolSet>(options: AgentOptions<T>): AgentOptions<ToolSet> {
  const { skills = [] } = options;
  if (skills.length === 0) return options as unknown as AgentOptions<ToolSet>;
  const list = skills.map(({ name, description }) => `- ${name}: ${description.replace(/\s+/g, " ")}`);
  const told = `You have skills. When a task fits one, read it with ${TOOL} before you begin:\n${list.join("\n")}`;
  const instructions = [options.instructions, told].filter((text) => text).join("\n\n");
  const known = toolsOf.get(skills) ?? readerOf(skills);
  toolsOf.set(skills, known);
  return {
    ...(options as unknown as AgentOptions<ToolSet>),
    instructions,
    tools: { ...options.tools, [TOOL]: known },
  };
}

const TOOL = "readSkill";

/** One reader a list of skills, so that a text is fetched once. */
const toolsOf = /* @__PURE__ */ new WeakMap<readonly Skill[], Tool>();

function readerOf(skills: readonly Skill[]): Tool {
  const texts = new Map<string, MaybePromise<string>>();
  return tool({
    description: "Reads one of the skills, or a file that a skill refers to.",
    input: {
      type: "object",
      properties: { name: { type: "string" }, file: { type: "string" } },
      required: ["name"],
    },
    repeatable: true,
    execute: async (input) => {
      const { name, file } = input as { readonly name: string; readonly file?: string };
      const found = skills.find((candidate) => candidate.name === name);
      if (found === undefined)
        throw invalidInput(`there is no skill "${name}": they are ${skills.map((one) => one.name).join(", ")}`);
      const files = found.files ?? {};
      const source = file === undefined ? found.content : Object.hasOwn(files, file) ? files[file] : undefined;
      if (source === undefined)
        throw invalidInput(
          `the skill "${name}" has no file "${file}": it has ${Object.keys(files).join(", ") || "none"}`,
        );
      const key = JSON.stringify([name, file]);
      const text = texts.get(key) ?? (typeof source === "string" ? source : source());
      texts.set(key, text);
      try {
        return await text;
      } catch (thrown) {
        texts.delete(key);
        throw thrown;
      }
    },
  });
}

/** The members of a front matter that are one line of text. Block texts (`>` and `|`) are read as their lines joined. */
function fields(frontMatter: string): Record<string, string | undefined> {
  const found: Record<string, string> = {};
  let open: string | undefined;
  for (const line of frontMatter.split(/\r?\n/)) {
    const match = /^([A-Za-z_-]+):[ \t]*(.*)$/.exec(line);
    if (match !== null) {
      const [, name = "", value = ""] = match;
      const isBlock = /^[>|][+-]?$/.test(value.trim());
      open = isBlock || value.trim() === "" ? name : undefined;
      found[name] = isBlock ? "" : unquoted(value.trim());
    } else if (open !== undefined && /^\s+\S/.test(line)) {
      found[open] = `${found[open] ?? ""} ${line.trim()}`.trim();
    }
  }
  return found;
}

function unquoted(value: string): string {
  const match = /^(["'])(.*)\1$/.exec(value);
  return match?.[2] ?? value;
}
