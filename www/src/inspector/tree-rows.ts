// A session's tree as rows of a list: each message below the one it follows, branches further in.
import type { Message, TreeEntry } from "crablet";

export interface TreeRow {
  readonly id: string;
  readonly role: Message["role"];
  readonly text: string;
  /** How many branchings lie above it. */
  readonly depth: number;
  /** Whether it belongs to the conversation as it is now, not to what was left. */
  readonly isCurrent: boolean;
  /** Whether the next prompt follows it. */
  readonly isHead: boolean;
  /** Whether a conversation can go on after it: not between calls and their results. */
  readonly isPlace: boolean;
}

/** The rows of a tree, whose conversation ends with the message `head`. */
export function rowsOf(entries: readonly TreeEntry[], head: string | undefined): TreeRow[] {
  const children = new Map<string | undefined, TreeEntry[]>();
  for (const entry of entries) {
    const followers = children.get(entry.parentId);
    if (followers) followers.push(entry);
    else children.set(entry.parentId, [entry]);
  }
  const current = wayTo(entries, head);
  const rows: TreeRow[] = [];
  // A list of its own instead of recursion: a conversation can be longer than the stack.
  const open = (children.get(undefined) ?? []).map((entry) => ({ entry, depth: 0 })).reverse();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { message } = next.entry;
    // One without a name is followed by none.
    const id = message.id ?? "";
    const followers = id === "" ? [] : (children.get(id) ?? []);
    const depth = next.depth + (followers.length > 1 ? 1 : 0);
    open.push(...followers.map((entry) => ({ entry, depth })).reverse());
    rows.push({
      id,
      role: message.role,
      text: textOf(message),
      depth: next.depth,
      isCurrent: current.has(id),
      isHead: id === head,
      isPlace: !(message.role === "assistant" && message.content.some(({ type }) => type === "tool-call")),
    });
  }
  return rows;
}

function wayTo(entries: readonly TreeEntry[], head: string | undefined): ReadonlySet<string> {
  const parents = new Map(entries.map(({ message, parentId }) => [message.id ?? "", parentId]));
  const way = new Set<string>();
  for (let id = head; id !== undefined && !way.has(id); id = parents.get(id)) way.add(id);
  return way;
}

/** What a message says, in short. */
function textOf(message: Message): string {
  const words = message.content.flatMap((part): string[] => {
    if (part.type === "text") return [part.text];
    if (part.type === "tool-call") return [`calls ${part.toolName}`];
    return part.type === "tool-result" ? [`result of ${part.toolName}`] : [];
  });
  return words.join("\n").trim();
}
