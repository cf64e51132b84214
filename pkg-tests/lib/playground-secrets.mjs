// Keys that are typed into the fields of the page of `make demo`, against servers that repeat all that they get: none is in what the
// page shows beside those fields, says, keeps, saves to a file or sends elsewhere.
import { readFile } from "node:fs/promises";
import { Playground } from "../../www/demo/playground.mjs";
import { startPageServer } from "../../www/demo/page-server.mjs";
import { pageFolder, setUpPage } from "../../www/demo/setup.mjs";
import { withPage } from "./browser.mjs";
import { startOAuthServers } from "./oauth-servers.mjs";
import { leakIn, plainPlanted, planted } from "./planted.mjs";
import { CORS } from "./servers.mjs";
import { keptIn, startRepeating, watch } from "./watched-page.mjs";

const PROVIDERS = ["anthropic", "openai", "openai-responses", "gemini", "azure", "vertex", "bedrock", "compatible"];

/** What a provider needs beside a model, a key and an address. */
const MORE = { Project: "p", Region: "us-east-1" };

/** A token of the shim in its form, with a secret that is found. */
const SHIM_TOKEN = ["id-of-it!", "planted-token-of-a-shim-32-bytes"]
  .map((part) => Buffer.from(part).toString("base64url"))
  .join(".");

/** Where nobody listens. */
const NOBODY = "http://127.0.0.1:9";

/** In the form of a shim's code. */
const CODE = "2345-6789-ABCD";

/** The page in a browser, and all that could be seen of it. */
class Searched {
  /** Pairs of a place and what is there. */
  seen = [];

  constructor(page, playground) {
    this.page = page;
    this.playground = playground;
  }

  /** Opens everything that is folded, and takes down what the page shows, keeps and would save. */
  async look(what) {
    await this.#lookAt("Inspector", what);
    await this.#lookAt("Connection", what);
    this.#add(`${what}: what the page keeps`, await keptIn(this.page));
  }

  /** Takes down what stands beside a form that is open, which is gone when another tab is chosen. */
  async lookAtForm(what) {
    await this.#lookAt("Connection", what);
  }

  async #lookAt(tab, what) {
    const { page } = this;
    await page.getByRole("tab", { name: tab }).click();
    // Everything that is folded is written only when it is opened.
    await page.evaluate(() => {
      for (const details of document.querySelectorAll("details")) details.open = true;
    });
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
    this.#add(`${what}: the page under ${tab}`, await page.content());
    this.#add(`${what}: a field under ${tab}`, await this.#fields());
    if (tab === "Inspector") this.#add(`${what}: a saved conversation`, await this.#saved());
  }

  /** What stands in the fields that hide nothing, but for those that a key was typed into on purpose. */
  #fields() {
    return this.page.evaluate(() => {
      const fields = [...document.querySelectorAll("input, textarea, select")];
      return fields
        .filter(({ type, id }) => type !== "password" && id !== "base-url")
        .map(({ value }) => value)
        .join("\n");
    });
  }

  async #saved() {
    const button = this.page.getByRole("button", { name: "Save to a file" });
    if (await button.isDisabled()) return "";
    const [download] = await Promise.all([this.page.waitForEvent("download"), button.click()]);
    return await readFile(await download.path(), "utf8");
  }

  #add(where, text) {
    this.seen.push([where, text]);
  }
}

/** Searches the page. Gives how many texts were searched. */
export async function playground() {
  await setUpPage(() => {});
  const site = await startPageServer({ folder: pageFolder });
  const server = await startRepeating();
  const oauth = await startOAuthServers({ interfere: repeatingOnceSignedIn });
  const seen = [];
  try {
    await withPage(async (page) => {
      watch(page, seen, [site.origin, server.url, new URL(oauth.url).origin, oauth.issuer, NOBODY]);
      page.setDefaultTimeout(20_000);
      await page.goto(site.origin);
      const searched = new Searched(page, Object.assign(new Playground(), { page }));
      await models(searched, server);
      await servers(searched, server);
      await signedIn(searched, oauth);
      seen.push(...searched.seen);
    });
  } finally {
    await Promise.all([site.close(), server.stop(), oauth.stop()]);
  }
  if (leakIn(server.asked) === undefined) throw new Error("the server got no key");
  if (!seen.some(([where]) => where.endsWith("a saved conversation"))) throw new Error("nothing was saved");
  seen.push(...server.strangers.map((request) => ["a request to another origin", request]));
  const leaks = seen.flatMap(([where, text]) => {
    const leak = leakIn(text) ?? (text.includes(CODE) ? CODE : undefined);
    return leak === undefined ? [] : [`${where} shows a key: ${leak}`];
  });
  if (leaks.length > 0) throw new Error(`${leaks.length} of ${seen.length} texts show a key:\n${leaks.join("\n")}`);
  return seen.length;
}

/** The key of each provider, and keys in its address. */
async function models(searched, server) {
  const { page, playground } = searched;
  for (const provider of PROVIDERS) {
    await page.getByLabel("Who answers").selectOption(provider);
    await page.locator("#model").fill("m");
    for (const [label, value] of Object.entries(MORE)) {
      const field = page.getByLabel(label, { exact: true });
      if (await field.count()) await field.fill(value);
    }
    await page.locator("#base-url").fill(server.url);
    await page.locator("#api-key").fill(planted("key"));
    // A redirect is tried again, as any network that fails, which takes a while.
    for (server.answer of provider === "anthropic" || provider === "gemini"
      ? ["refusal", "failure", "redirect"]
      : ["refusal", "failure"]) {
      await playground.ask(`${provider} and a ${server.answer}`);
      await searched.look(`${provider} with a ${server.answer}`);
    }
  }
  server.answer = "refusal";
  for (const address of [
    server.url.replace("//", `//${plainPlanted("user")}:${plainPlanted("password")}@`),
    `${server.url}/v1?key=${encodeURIComponent(planted("query"))}`,
    `${server.url}/v1#${encodeURIComponent(planted("fragment"))}`,
    `${planted("none")}`,
  ]) {
    await page.locator("#base-url").fill(address);
    await playground.ask(`Something at ${address.indexOf("planted")}`);
    await searched.look(`the address ${address.replaceAll("planted", "…")}`);
  }
  await page.locator("#base-url").fill(server.url);
}

/** Keys in the address of a tool server, a token of the shim and a code for one. */
async function servers(searched, server) {
  const { page } = searched;
  const add = page.getByRole("button", { name: "Add", exact: true });
  const connect = page.getByRole("button", { name: "Connect", exact: true });
  const query = `token=${encodeURIComponent(planted("query"))}&page=${encodeURIComponent(planted("other"))}`;
  const user = `//${plainPlanted("user")}:${plainPlanted("password")}@`;
  for (const [name, address] of Object.entries({
    "in a query": `${server.url}/mcp?${query}`,
    "in a user": `${server.url.replace("//", user)}/mcp`,
    "at nobody": `${NOBODY}/mcp?${query}`,
  })) {
    await add.click();
    await page.getByLabel("Name", { exact: true }).fill(name);
    await page.getByRole("textbox", { name: "Address" }).fill(address);
    await connect.click();
    await searched.playground.server(name).getByRole("alert").waitFor();
    await searched.playground.ask(`With a server whose key is ${name}`);
    await searched.look(`a tool server with a key ${name}`);
    await page.getByRole("button", { name: `Remove ${name}` }).click();
  }
  await add.click();
  await page.getByLabel("Shim token").check();
  await page.getByLabel("Server name, as the shim knows it").fill("files");
  await page.getByLabel("Shim address").fill(server.url.replace("http", "ws"));
  for (const token of [planted("token"), SHIM_TOKEN]) {
    await page.locator("#server-token").fill(token);
    await searched.lookAtForm("a token of a shim while it is typed");
  }
  await connect.click();
  await searched.playground.server("files").getByRole("alert").waitFor();
  await searched.look("a token of a shim");
  await page.getByRole("button", { name: "Remove files" }).click();
  await add.click();
  await page.getByLabel("Shim code").check();
  await page.getByLabel("Shim address").fill(server.url.replace("http", "ws"));
  for (const code of [planted("code"), CODE]) {
    await page.getByLabel("Pairing code").fill(code);
    await connect.click();
    await page.getByRole("form", { name: "Add a tool server" }).getByRole("alert").waitFor();
    await page.getByLabel("Pairing code").fill("");
    await searched.lookAtForm("a code for a shim");
  }
  await page.getByRole("button", { name: "Cancel" }).click();
}

/** Tokens of a tool server that a person has signed in to, and that repeats them later. */
async function signedIn(searched, oauth) {
  const { page, playground } = searched;
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByLabel("Name", { exact: true }).fill("members");
  await page.getByRole("textbox", { name: "Address" }).fill(oauth.url);
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.locator('.server[data-server="members"][data-state="ready"]').waitFor();
  const row = playground.server("members");
  await row.getByText("1 tool", { exact: true }).click();
  await row.locator(".offer summary").click();
  await row.getByRole("button", { name: "Call it" }).click();
  await row.locator(".offer").getByText("refused", { exact: false }).first().waitFor();
  await searched.look("a tool server that a person has signed in to");
  if (oauth.seen.secrets.size < 4) throw new Error("nobody signed in");
}

/** Repeats the token of a call in an error of the protocol, and in headers. */
function repeatingOnceSignedIn({ url, request, response, body }) {
  const token = request.headers.authorization;
  if (url.pathname !== "/mcp" || token === undefined || !body.includes('"tools/call"')) return false;
  const error = { code: -32_000, message: `refused ${token} and ${encodeURIComponent(token)}`, data: request.headers };
  response.writeHead(200, { "content-type": "application/json", "x-repeated": token, ...CORS });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(body).id, error }));
  return true;
}
