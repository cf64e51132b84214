import { CrabletError, messageOf } from "../error.js";
import type { OAuthConsent } from "../oauth.js";

/** The part of `chrome.identity` and `browser.identity` that is used. */
export interface ExtensionIdentity {
  /** The address of the extension that a path leads to. */
  getRedirectURL(path?: string): string;
  /** Opens the window; resolves with the address that it was sent to at the end. */
  launchWebAuthFlow(details: { url: string; interactive?: boolean }): Promise<string | undefined>;
}

/**
 * Asks in the window of an extension's `identity.launchWebAuthFlow`; the manifest needs the permission `identity`. People are
 * sent back to `https://<id>.chromiumapp.org/`, which no other extension can receive. The window cannot be closed from here:
 * when nobody waits any more it stays until the person closes it.
 */
export function extension(identity: ExtensionIdentity = platformIdentity()): OAuthConsent {
  return {
    redirectUrl: () => identity.getRedirectURL(),
    async authorize(url, { signal }) {
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
      const flow = identity.launchWebAuthFlow({ url: url.href, interactive: true }).catch((thrown) => {
        throw new CrabletError({ kind: "auth", message: `the authorization was not granted: ${messageOf(thrown)}` });
      });
      const callback = await Promise.race([flow, aborted]);
      if (callback) return callback;
      throw new CrabletError({
        kind: "auth",
        message: "the window of the authorization was closed before it was over",
      });
    },
  };
}

function platformIdentity(): ExtensionIdentity {
  const { browser, chrome } = globalThis as {
    browser?: { identity?: ExtensionIdentity };
    chrome?: { identity?: ExtensionIdentity };
  };
  const identity = browser?.identity ?? chrome?.identity;
  if (identity) return identity;
  throw new CrabletError({
    kind: "invalid-input",
    message: "extension() works in an extension whose manifest has the permission `identity`",
  });
}
