// Checks that the example extension asks for what it uses and nothing else, and that docs/extension.md says what for.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const folder = join(root, "www/extension");
const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
const guide = readFileSync(join(root, "docs/extension.md"), "utf8");
const sources = readdirSync(join(folder, "src"), { recursive: true, withFileTypes: true }).filter((entry) =>
  entry.isFile(),
);
const code = sources.map(({ parentPath, name }) => readFileSync(join(parentPath, name), "utf8")).join("\n");

/** What shows that a permission is used. Any other permission is unknown here, and so refused. */
const USES = {
  activeTab: /\.executeScript\(/,
  alarms: /\bchrome\.alarms\./,
  nativeMessaging: /\bmcp\.nativeMessaging\(/,
  scripting: /\bchrome\.scripting\b/,
  sidePanel: /\bchrome\.sidePanel\./,
  storage: /\bchrome\.storage\./,
};
/** Parts of the interface that need no permission; `tabs` tells less without one. */
const FREE = ["action", "permissions", "runtime", "tabs"];
/** Addresses that are asked for one by one, when a person has entered one. */
const HOSTS = ["https://*/*", "http://localhost/*", "http://127.0.0.1/*"];

const wrong = [];
const { permissions = [], optional_permissions: optional = [], optional_host_permissions: hosts = [] } = manifest;
for (const name of [...permissions, ...optional]) {
  if (!USES[name]) wrong.push(`it asks for ${name}, of which scripts/permissions.mjs knows no use`);
  else if (!USES[name].test(code)) wrong.push(`it asks for ${name} and does not use it`);
  if (!new RegExp(`^\\| \`${name}\` \\|`, "m").test(guide))
    wrong.push(`docs/extension.md does not say what ${name} is for`);
}
for (const [, used] of code.matchAll(/\bchrome\.([a-z]\w*)/gi)) {
  if (!FREE.includes(used) && ![...permissions, ...optional].includes(used))
    wrong.push(`it uses chrome.${used} without asking`);
}
for (const name of ["host_permissions", "content_scripts", "externally_connectable", "web_accessible_resources"]) {
  if (manifest[name] !== undefined) wrong.push(`it has ${name}, which it does not need`);
}
if (hosts.join() !== HOSTS.join()) wrong.push(`its addresses are ${hosts.join(", ")}, and not ${HOSTS.join(", ")}`);
if (!/chrome\.permissions\.request\(\{ origins: /.test(code))
  wrong.push("it does not ask for the addresses one by one");
for (const line of new Set(wrong)) console.error(`www/extension/manifest.json: ${line}`);
process.exitCode = wrong.length > 0 ? 1 : 0;
