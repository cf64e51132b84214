// Markdown as elements, never as HTML text: what a model writes cannot become markup, so there is nothing to sanitise afterwards. HTML in
// the text is shown as it was written, links go only where a link may, and images are links, since loading one tells its server.
import type { ComponentChildren, VNode } from "preact";
import { memo } from "preact/compat";
import { Lexer, type Token, type Tokens } from "marked";
import { Scrollable } from "../ui/scrollable";

/** Addresses a link may have. */
const LINK = /^(?:https?:|mailto:)/i;

/** How deep quotes and lists nest on screen; what is deeper is shown as text. */
const MAX_DEPTH = 24;

export function Markdown({ text }: { readonly text: string }) {
  return (
    <div class="markdown" dir="auto">
      {lex(text).map((token, index) => (
        <Block key={index} raw={token.raw} token={token} />
      ))}
    </div>
  );
}

function lex(text: string): readonly Token[] {
  try {
    return Lexer.lex(text, { gfm: true });
  } catch {
    // The lexer recurses without a limit: a text that nests too deep for it is shown as it is.
    return [{ type: "text", raw: text, text }];
  }
}

/** While a text streams, only its last block changes: the others are known by their source and not rendered again. */
const Block = memo(
  ({ token }: { readonly raw: string; readonly token: Token }) => <>{renderBlock(token, 0)}</>,
  (before, after) => before.raw === after.raw,
);

function renderBlock(token: Token, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return token.raw;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return heading(token as Tokens.Heading, depth);
    case "paragraph":
      return <p>{inline(token, depth)}</p>;
    case "code":
      return (
        <Scrollable class="code-block" language={(token as Tokens.Code).lang?.split(/\s/)[0] || undefined}>
          <code>{(token as Tokens.Code).text}</code>
        </Scrollable>
      );
    case "blockquote":
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens, depth)}</blockquote>;
    case "list":
      return list(token as Tokens.List, depth);
    case "table":
      return table(token as Tokens.Table, depth);
    case "hr":
      return <hr />;
    case "text":
      return "tokens" in token && token.tokens ? inline(token, depth) : (token as Tokens.Text).text;
    default:
      return <p>{token.raw}</p>;
  }
}

function blocks(tokens: readonly Token[], depth: number): ComponentChildren {
  return tokens.map((token) => renderBlock(token, depth + 1));
}

function heading(token: Tokens.Heading, depth: number): VNode {
  // The page's own headings end at level 2: what a model writes stands below them.
  const Level = `h${Math.min(token.depth + 2, 6)}` as "h3" | "h4" | "h5" | "h6";
  return <Level>{inline(token, depth)}</Level>;
}

function list(token: Tokens.List, depth: number): VNode {
  const items = token.items.map((item) => (
    <li class={item.task ? "task" : undefined}>
      {item.task && (
        <input type="checkbox" checked={item.checked === true} disabled aria-label={item.checked ? "done" : "open"} />
      )}
      {item.tokens.filter((child) => child.type !== "checkbox").map((child) => renderBlock(child, depth + 1))}
    </li>
  ));
  return token.ordered ? <ol start={token.start === "" ? 1 : token.start}>{items}</ol> : <ul>{items}</ul>;
}

function table(token: Tokens.Table, depth: number): VNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by those who have no pointer
    <section class="table-scroll" tabIndex={0} aria-label="Table">
      <table>
        <thead>
          <tr>
            {token.header.map((cell) => (
              <th class={alignment(cell.align)}>{inline(cell, depth)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row) => (
            <tr>
              {row.map((cell) => (
                <td class={alignment(cell.align)}>{inline(cell, depth)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function inline(
  parent: { readonly tokens?: Token[] | undefined; readonly text?: string },
  depth: number,
): ComponentChildren {
  if (depth > MAX_DEPTH) return parent.text;
  return parent.tokens?.map((token): ComponentChildren => {
    switch (token.type) {
      case "strong":
        return <strong>{inline(token as Tokens.Strong, depth + 1)}</strong>;
      case "em":
        return <em>{inline(token as Tokens.Em, depth + 1)}</em>;
      case "del":
        return <del>{inline(token as Tokens.Del, depth + 1)}</del>;
      case "codespan":
        return <code>{(token as Tokens.Codespan).text}</code>;
      case "br":
        return <br />;
      case "link":
        return link((token as Tokens.Link).href, inline(token as Tokens.Link, depth + 1));
      case "image":
        return link((token as Tokens.Image).href, (token as Tokens.Image).text || "image");
      case "text":
        return "tokens" in token && token.tokens
          ? inline(token, depth + 1)
          : withCharacters((token as Tokens.Text).text);
      case "escape":
        return (token as Tokens.Escape).text;
      default:
        return token.raw;
    }
  });
}

function link(address: string, children: ComponentChildren): ComponentChildren {
  if (!LINK.test(address)) return children;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

function alignment(align: "center" | "left" | "right" | null): string | undefined {
  return align === null ? undefined : `align-${align}`;
}

/** Puts the characters in the place of the references that people write to them. */
function withCharacters(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|nbsp|#39);/g, (_, name: string) => CHARACTERS[name] ?? "");
}

const CHARACTERS: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  nbsp: "\u00a0",
  "#39": "'",
};
