import { CrabletError } from "../error.js";
import type { OAuthConsent } from "../oauth.js";

/** Options of `popup()`. */
export interface PopupOptions {
  /**
   * The page that people are sent back to: one of the opener's origin, which may be empty or call `finishPopup()`. Default:
   * `oauth-callback.html` beside the page.
   */
  readonly redirectUrl?: string | URL;
  /** The features of the window, as `window.open` takes them. */
  readonly features?: string;
}

/** How the page of the redirect tells the opener where it is: also where the opener cannot see the window. */
const CHANNEL = "crablet.oauth";

/** How often the window is looked at, in milliseconds. */
const INTERVAL = 200;

/** How long after its end the window may still be heard of, in milliseconds. */
const GRACE = 1_000;

/**
 * Asks in a window of its own. Browsers open one only as the result of a click or a key: connect in its handler, or the
 * authorization fails and says so.
 *
 * The window is followed until it comes back to `redirectUrl`. An authorization server that cuts the tie between window and
 * opener (`Cross-Origin-Opener-Policy`) needs a page there that calls `finishPopup()`.
 */
export function popup({ redirectUrl, features = "popup,width=520,height=720" }: PopupOptions = {}): OAuthConsent {
  const target = (): URL => new URL(redirectUrl ?? "oauth-callback.html", document.baseURI);
  return {
    redirectUrl: target,
    authorize(url, { signal }) {
      const opened = window.open(url, "_blank", features);
      if (opened === null) {
        throw failed("the browser blocked the window of the authorization: connect in the handler of a click");
      }
      return follow(opened, target(), url.searchParams.get("state"), signal);
    },
  };
}

/** For the page that people are sent back to: tells the opener, and closes the window. */
export function finishPopup(): void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.postMessage(location.href);
  channel.close();
  window.close();
}

/** Resolves with the address at which the window comes back to the target. */
function follow(opened: Window, target: URL, state: string | null, signal: AbortSignal): Promise<string> {
  const channel = new BroadcastChannel(CHANNEL);
  let interval: ReturnType<typeof setInterval> | undefined;
  let gone = 0;
  const settled = new Promise<string>((resolve, reject) => {
    const arrived = (href: unknown): void => {
      // Other authorizations of this origin are told on the channel too, and a window that has loaded nothing yet is nowhere.
      if (typeof href === "string" && URL.canParse(href) && isAnswer(new URL(href), target, state)) resolve(href);
    };
    channel.onmessage = ({ data }) => arrived(data);
    interval = setInterval(() => {
      arrived(hrefOf(opened));
      // A window that its opener may no longer see says that it is closed; then the person is not here yet.
      gone = opened.closed && document.hasFocus() ? gone + INTERVAL : 0;
      if (gone > GRACE) reject(failed("the window of the authorization was closed before it was over"));
    }, INTERVAL);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  return settled.finally(() => {
    clearInterval(interval);
    channel.close();
    opened.close();
  });
}

/** Where a window is, if it is at this page's origin. */
function hrefOf(opened: Window): string | undefined {
  try {
    return opened.location.href;
  } catch {
    return undefined;
  }
}

function isAnswer({ origin, pathname, searchParams }: URL, target: URL, state: string | null): boolean {
  return origin === target.origin && pathname === target.pathname && searchParams.get("state") === state;
}

function failed(message: string): CrabletError {
  return new CrabletError({ kind: "auth", message });
}
