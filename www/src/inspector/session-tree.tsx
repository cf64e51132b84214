// The tree of the session: every message that came, also those of ways that were left, with jumps and forks.
import { useSignal } from "@preact/signals";
import {
  forkAt,
  goTo,
  isInterrupted,
  isRunning,
  otherConversation,
  swapConversations,
  tree,
} from "../chat/conversation";
import { oneLine } from "../chat/tool-output";
import { infoOf } from "../ui/error-words";
import { ChevronIcon } from "../ui/icons";
import { Scrollable } from "../ui/scrollable";
import { Newest } from "./newest";
import { rowsOf, type TreeRow } from "./tree-rows";

/** The deepest step inwards that a row is shown at: a narrow panel has room for no more. */
const MAX_DEPTH = 6;

const ROLE_WORDS = { user: "You", assistant: "Model", tool: "Tools" };

export function SessionTree() {
  const problem = useSignal<string | undefined>(undefined);
  const rows = rowsOf(tree.value.entries, tree.value.head);
  const other = otherConversation.value;
  if (rows.length === 0 && !other) return null;

  const doing = (action: Promise<void>) => {
    problem.value = undefined;
    action.catch((error: unknown) => (problem.value = infoOf(error).message));
  };
  return (
    <section class="panel-section" aria-labelledby="tree-heading">
      <h3 id="tree-heading">Messages</h3>
      <Newest
        entries={rows}
        show={(shown) => (
          <ol class="events tree">
            {shown.map((row) => (
              <li
                key={row.id}
                data-current={row.isCurrent ? "yes" : "no"}
                aria-current={row.isHead ? "true" : undefined}
                style={{ paddingInlineStart: `${Math.min(row.depth, MAX_DEPTH) * 0.9}rem` }}
              >
                <Row row={row} doing={doing} />
              </li>
            ))}
          </ol>
        )}
      />
      {other && (
        <button
          type="button"
          class="quiet-button"
          disabled={isRunning.value}
          onClick={() => doing(swapConversations())}
        >
          Change to the other conversation
        </button>
      )}
      {problem.value && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
    </section>
  );
}

function Row({ row, doing }: { readonly row: TreeRow; readonly doing: (action: Promise<void>) => void }) {
  const isBusy = isRunning.value || isInterrupted.value;
  return (
    <details>
      <summary>
        <ChevronIcon />
        <strong>{ROLE_WORDS[row.role]}</strong>
        <span class="tree-text">{oneLine(row.text)}</span>
        {row.isHead && <span class="tree-mark">here</span>}
        {!row.isCurrent && <span class="tree-mark">left</span>}
      </summary>
      <Scrollable>{row.text}</Scrollable>
      {row.isPlace ? (
        <div class="form-buttons">
          <button
            type="button"
            class="quiet-button"
            disabled={isBusy || row.isHead}
            onClick={() => doing(goTo(row.id))}
          >
            Go on from here
          </button>
          <button type="button" class="quiet-button" disabled={isBusy} onClick={() => doing(forkAt(row.id))}>
            Fork here
          </button>
        </div>
      ) : (
        <p class="help">The results of its calls have to follow: choose those.</p>
      )}
    </details>
  );
}
