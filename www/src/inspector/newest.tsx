// A list that shows its newest entries first, and all of them when asked: a long one would make the page slow.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

/** How many entries are listed at first. */
const SHOWN = 120;

export interface NewestProps<Entry> {
  readonly entries: readonly Entry[];
  readonly show: (entries: readonly Entry[]) => ComponentChildren;
}

export function Newest<Entry>({ entries, show }: NewestProps<Entry>) {
  const isWhole = useSignal(false);
  const shown = isWhole.value ? entries : entries.slice(-SHOWN);
  return (
    <>
      {shown.length < entries.length && (
        <button type="button" class="quiet-button" onClick={() => (isWhole.value = true)}>
          Show all {entries.length}
        </button>
      )}
      {show(shown)}
    </>
  );
}
