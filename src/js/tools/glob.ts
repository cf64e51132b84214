import { LinearRegex } from "./linear-regex.js";

/** The longest glob taken, in UTF-16 units. */
const MAX_GLOB = 500;

/**
 * Whether a path fits a glob: `*` and `?` within a name, `**` across folders, `[abc]`, `{one,two}`. A glob without "/" is for
 * the name alone, in whichever folder.
 *
 * @throws Error with a message for the model when the glob is not valid.
 */
export function globMatcher(glob: string): (path: string) => boolean {
  if (glob.length > MAX_GLOB) throw new Error(`the glob is longer than ${MAX_GLOB} characters`);
  const regex = compile(glob.includes("/") ? glob.replace(/^\.?\//, "") : `**/${glob}`);
  return (path) => regex.matches(path);
}

function compile(glob: string): LinearRegex {
  try {
    return new LinearRegex(`^(?:${toPattern(glob)})$`);
  } catch {
    throw new Error(`${JSON.stringify(glob)} is not a glob: write one such as "*.ts" or "src/**/*.{js,ts}"`);
  }
}

function toPattern(glob: string): string {
  let depth = 0;
  return glob.replace(/\*\*\/|\*+|\[[^\]/]*\]|./gsu, (part) => {
    if (part === "**/") return "(?:[\\s\\S]*/)?";
    if (part.startsWith("**")) return "[\\s\\S]*";
    if (part === "*") return "[^/]*";
    if (part === "?") return "[^/]";
    if (part.length > 2 && part.startsWith("["))
      return `[${part.slice(1, -1).replace(/^!/, "^").replace(/\\/g, "\\\\")}]`;
    if (part === "{") {
      depth += 1;
      return "(?:";
    }
    if (part === "}" && depth > 0) {
      depth -= 1;
      return ")";
    }
    if (part === "," && depth > 0) return "|";
    return part.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
  });
}
