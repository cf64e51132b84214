import { renderToString } from "preact-render-to-string";
import { expect, test } from "vitest";
import { Markdown } from "./markdown";

const html = (text: string) => renderToString(<Markdown text={text} />).replace(/^<div [^>]*>|<\/div>$/g, "");

test.each([
  ["HTML is shown as it was written", "a <img src=x onerror=alert(1)> b", "<p>a &lt;img src=x onerror=alert(1)> b</p>"],
  ["a block of HTML too", "<script>alert(1)</script>", "<p>&lt;script>alert(1)&lt;/script></p>"],
  ["a link that would run script is text", "[x](javascript:alert(1))", "<p>x</p>"],
  ["also in capitals", "[x](JaVaScRiPt:alert(1))", "<p>x</p>"],
  ["and as data", "[x](data:text/html,hi)", "<p>x</p>"],
  ["character references mean their characters", "1 &lt; 2 &amp; 3", "<p>1 &lt; 2 &amp; 3</p>"],
  ["but not in code", "`&lt;`", "<p><code>&amp;lt;</code></p>"],
  ["headings stand below those of the page", "# One", "<h3>One</h3>"],
  ["lists nest", "- a\n  - b", "<ul><li>a<ul><li>b</li></ul></li></ul>"],
  ["ordered lists keep their start", "3. c", '<ol start="3"><li>c</li></ol>'],
  ["breaks and emphasis", "**a** *b*  \n~~c~~", "<p><strong>a</strong> <em>b</em><br/><del>c</del></p>"],
])("%s", (_, text, expected) => expect(html(text)).toBe(expected));

test("web links open elsewhere and tell nothing about this page", () => {
  expect(html("[x](https://e.com/?a=1&b=2)")).toBe(
    '<p><a href="https://e.com/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer nofollow">x</a></p>',
  );
});

test("images are links, never loaded", () => {
  expect(html("![cat](https://e.com/c.png)")).not.toContain("<img");
  expect(html("![cat](https://e.com/c.png)")).toContain(">cat</a>");
});

test("half a code block, as it looks while it streams, is a code block", () => {
  expect(html("```js\nlet a = 1;")).toContain("<code>let a = 1;</code>");
});

test("nesting without end does not end the page", () => {
  expect(html(`${">".repeat(2_000)} deep`)).toContain("deep");
});
