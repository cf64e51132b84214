// Writes the documentation as a static site into dist/docs/: the guides, what they lead to in this repository, and the API
// reference that scripts/reference.mjs has written (without it with `--guides-only`). Fails when a link leads nowhere, or no
// link leads to a guide.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join, posix, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const site = join(root, "dist/docs");
const INDEX = "docs/README.md";
/** Shown as they are; all other files that a guide leads to are shown as text. */
const IMAGES = [".png", ".svg"];
const REFERENCES = { JavaScript: "reference/javascript/index.html", Rust: "reference/rust/crablet/index.html" };

const MarkdownIt = createRequire(join(root, "docs/reference/package.json"))("markdown-it");
const markdown = new MarkdownIt({ html: true });
const { escapeHtml } = markdown.utils;
const problems = [];

const withReference = !process.argv.includes("--guides-only");
const pages = readPages();
const navigation = readNavigation();

rmSync(site, { recursive: true, force: true });
for (const page of pages.values()) write(outputOf(page.path), htmlOf(page));
write("style.css", readFileSync(join(root, "docs/site/style.css")));
if (withReference) cpSync(join(root, "target/reference"), join(site, "reference"), { recursive: true });
checkAnchors();

for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
console.log(`dist/docs/index.html: ${pages.size} pages, without a dead link`);

/** Every document that can be reached from the index, by its path. */
function readPages() {
  const found = new Map();
  const waiting = [INDEX];
  for (const path of waiting) {
    if (found.has(path)) continue;
    const page = readPage(path);
    found.set(path, page);
    waiting.push(...page.links.map(({ target }) => target).filter((target) => target.endsWith(".md")));
  }
  for (const name of readdirSync(join(root, "docs"))) {
    if (name.endsWith(".md") && !found.has(`docs/${name}`)) problems.push(`docs/${name}: no link leads to it`);
  }
  return found;
}

/** Gives headings their anchors, and looks up where each link leads. */
function readPage(path) {
  const tokens = markdown.parse(readFileSync(join(root, path), "utf8"), {});
  const page = { path, tokens, title: path, anchors: new Set(), links: [] };
  for (const [index, token] of tokens.entries()) {
    if (token.type === "heading_open") {
      const text = textOf(tokens[index + 1]);
      if (token.tag === "h1") page.title = text;
      token.attrSet("id", addAnchor(page.anchors, text));
    }
    for (const inline of token.children ?? []) {
      const name = { link_open: "href", image: "src" }[inline.type];
      const address = name && inline.attrGet(name);
      if (!address || /^[a-z]+:/.test(address)) continue;
      const [file, anchor] = address.split("#");
      const target = file === "" ? path : documentOf(posix.join(posix.dirname(path), decodeURIComponent(file)));
      if (target === undefined) problems.push(`${path}: ${address} leads nowhere`);
      else page.links.push({ inline, name, address, target, anchor });
    }
  }
  return page;
}

/** A file of the repository; of a folder, the document that says what it holds. */
function documentOf(path) {
  const full = join(root, path);
  if (!existsSync(full) || path.startsWith("..")) return undefined;
  return statSync(full).isDirectory() ? documentOf(posix.join(path, "README.md")) : path;
}

/** As GitHub makes them, so that a link holds in both places. */
function addAnchor(anchors, heading) {
  const base = heading
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Number}\p{Mark}_ -]/gu, "")
    .replaceAll(" ", "-");
  let anchor = base;
  for (let number = 1; anchors.has(anchor); number += 1) anchor = `${base}-${number}`;
  anchors.add(anchor);
  return anchor;
}

function textOf(inline) {
  return inline.children.map(({ type, content }) => (type === "softbreak" ? " " : content)).join("");
}

/** The index is also the navigation: its headings, and below each the links that its list begins with. */
function readNavigation() {
  const { tokens, links } = pages.get(INDEX);
  const sections = [];
  for (const [index, token] of tokens.entries()) {
    if (token.type === "heading_open" && token.tag === "h2")
      sections.push({ title: textOf(tokens[index + 1]), entries: [] });
    const [first, text] = token.children ?? [];
    const link = links.find(({ inline }) => inline === first);
    if (link && tokens[index - 2]?.type === "list_item_open") {
      sections.at(-1)?.entries.push({ title: text.content, target: link.target, anchor: link.anchor });
    }
  }
  return sections;
}

/** Where a file of the repository is in the site. */
function outputOf(path) {
  const place = path.startsWith("docs/") ? path.slice("docs/".length) : posix.join("repository", path);
  if (path.endsWith(".md")) return place.replace(/README\.md$/, "index.html").replace(/\.md$/, ".html");
  return IMAGES.includes(extname(path)) ? place : `${place}.txt`;
}

function htmlOf(page) {
  const folder = posix.dirname(outputOf(page.path));
  const addressOf = (output, anchor) => (posix.relative(folder, output) || ".") + (anchor ? `#${anchor}` : "");
  for (const { inline, name, target, anchor } of page.links) {
    const output = outputOf(target);
    inline.attrSet(name, addressOf(output, anchor));
    if (!target.endsWith(".md")) write(output, readFileSync(join(root, target)));
  }
  const item = ({ title, target, anchor }) => {
    const current = target === page.path && !anchor ? ' aria-current="page"' : "";
    return `<li><a href="${addressOf(outputOf(target), anchor)}"${current}>${escapeHtml(title)}</a></li>`;
  };
  const section = (title, items) => `<h2>${escapeHtml(title)}</h2>\n<ul>\n${items.join("\n")}\n</ul>`;
  const sections = navigation.map(({ title, entries }) => section(title, entries.map(item)));
  if (withReference) {
    const items = Object.entries(REFERENCES).map(
      ([title, path]) => `<li><a href="${addressOf(path)}">${title}</a></li>`,
    );
    sections.push(section("API reference", items));
  }
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(page.title)}${page.path === INDEX ? "" : " – crablet"}</title>
<link rel="stylesheet" href="${addressOf("style.css")}">
</head>
<body>
<nav aria-label="Guides">
<a href="${addressOf("index.html")}">crablet</a>
${sections.join("\n")}
</nav>
<main>
${markdown.renderer.render(page.tokens, markdown.options, {})}</main>
</body>
</html>
`;
}

function write(path, content) {
  const file = join(site, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

function checkAnchors() {
  for (const { path, links } of pages.values()) {
    for (const { address, target, anchor } of links) {
      if (anchor && target.endsWith(".md") && !pages.get(target).anchors.has(anchor)) {
        problems.push(`${path}: ${address} names no heading of ${target}`);
      }
    }
  }
  if (!withReference) return;
  for (const path of Object.values(REFERENCES)) {
    if (!existsSync(join(site, path))) problems.push(`the reference has no ${path}`);
  }
}
