// How a page and the shim show each other that they hold the same token, which never travels.
import { fromBase64, toBase64 } from "../base64.js";
import { CrabletError, invalidInput } from "../error.js";

/** A token, read. */
export class ShimToken {
  readonly #keyId: string;
  readonly #key: Promise<CryptoKey>;

  /**
   * @throws CrabletError `invalid-input` when the text is no token, and where the platform has no cryptography: in a page that
   * is neither over HTTPS nor of this machine.
   */
  constructor(text: string) {
    const [, keyId, secret] = /^([\w-]{1,64})\.([\w-]{43})$/.exec(text.trim()) ?? [];
    if (keyId === undefined || secret === undefined)
      throw invalidInput(
        "this is not a shim token; give what `mcp.pairShim()` or `crablet-shim grant` gave (<key-id>.<secret>)",
      );
    if (globalThis.crypto?.subtle === undefined)
      throw invalidInput(
        "tools can be offered from a page over HTTPS or of this machine only: it has no cryptography here",
      );
    this.#keyId = keyId;
    const bytes = fromBase64(secret.replaceAll("-", "+").replaceAll("_", "/"));
    this.#key = crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
    // It is awaited where it is used.
    this.#key.catch(() => undefined);
  }

  /** A fresh proof for the exposing at this host and port, as a subprotocol, and how the shim's own is checked. */
  async prove(authority: string, origin: string): Promise<{ readonly subprotocol: string; readonly verify: Verify }> {
    const nonce = toBase64Url(crypto.getRandomValues(new Uint8Array(16)));
    const key = await this.#key;
    const now = Date.now();
    // The last field is the server's name: none.
    const code = await crypto.subtle.sign("HMAC", key, bytesOf(`client|${nonce}|${now}|${authority}|${origin}|`));
    return {
      subprotocol: `crablet.proof.${this.#keyId}.${nonce}.${now}.${toBase64Url(new Uint8Array(code))}`,
      verify: async (shown) => {
        if (!/^[\w-]{43}$/.test(shown)) return false;
        const bytes = fromBase64(shown.replaceAll("-", "+").replaceAll("_", "/"));
        return crypto.subtle.verify("HMAC", key, bytes, bytesOf(`server|${nonce}`));
      },
    };
  }
}

/** Whether a text is the shim's proof over the nonce. */
export type Verify = (shown: string) => Promise<boolean>;

/** The host and port of an address whose host is this machine: nobody else is shown a proof. */
export function shimAuthority(url: string): string {
  const authority = /^wss?:\/\/((?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?)$/.exec(url)?.[1];
  if (authority === undefined)
    throw invalidInput(
      "the shim's address must be ws:// with the host 127.0.0.1, localhost or [::1] and a port, such as ws://127.0.0.1:6735",
    );
  return authority;
}

/** What stands at the shim's address is another program. */
export function notTheShim(authority: string): CrabletError {
  const message = `the program at ${authority} could not prove that it is your crablet-shim; stop it, or check the port`;
  return new CrabletError({ kind: "auth", message });
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
