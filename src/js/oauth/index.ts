/**
 * Ways to ask a person for consent, for the option `auth` of `mcp.http()`.
 *
 * @packageDocumentation
 */
export { extension, type ExtensionIdentity } from "./extension.js";
export { loopback, type LoopbackOptions } from "./loopback.js";
export { finishPopup, popup, type PopupOptions } from "./popup.js";
