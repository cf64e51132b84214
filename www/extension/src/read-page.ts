// The one tool of the extension itself: the text of the page that the user is on.
import { tool } from "crablet";

/** More than most pages have, and far from what a model can take. */
const MAX_CHARACTERS = 50_000;

export const readPage = tool({
  description: "Reads the text of the web page that the user is on.",
  input: { type: "object", properties: {} },
  // The text goes to the model's provider, and what it says may mislead the model: a person decides.
  needsApproval: true,
  repeatable: true,
  timeoutMs: 10_000,
  execute: async () => {
    const [tab] = await chrome.tabs.query({ active: true, lastFocusedWindow: true });
    if (tab?.id === undefined) throw new Error("No page is open.");
    const [page] = await chrome.scripting
      .executeScript({ target: { tabId: tab.id }, func: textOfPage })
      .catch(() => []);
    if (!page?.result)
      throw new Error("This page may not be read. The user can click the extension's icon on it, and then ask again.");
    const { title, address, text } = page.result;
    return { title, address, text: text.slice(0, MAX_CHARACTERS), isCut: text.length > MAX_CHARACTERS };
  },
});

/** Runs in the page. What is not shown is left out. */
function textOfPage(): { readonly title: string; readonly address: string; readonly text: string } {
  // biome-ignore lint/performance/useDomNodeTextContent: what the user sees is what may be read.
  return { title: document.title, address: location.href, text: document.body.innerText };
}
