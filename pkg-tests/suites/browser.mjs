// The package without a bundler in every context of Chromium, and under a policy that forbids WebAssembly.
import { withPage } from "../lib/browser.mjs";
import { streamInContexts } from "../lib/contexts.mjs";

export default function browser(project) {
  return streamInContexts(project, withPage, /cause: CompileError$/);
}
