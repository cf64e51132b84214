// Text in a box of its own that scrolls where it is too long, by keyboard too.
import type { ComponentChildren } from "preact";

export interface ScrollableProps {
  readonly class?: string;
  readonly language?: string | undefined;
  readonly children: ComponentChildren;
}

export function Scrollable({ class: name, language, children }: ScrollableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by those who have no pointer
    <pre class={name ?? "scrollable"} tabIndex={0} data-language={language}>
      {children}
    </pre>
  );
}
