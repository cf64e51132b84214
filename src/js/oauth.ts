import type { CoreAuthQuestion, CoreExecution } from "./core.js";
import { invalidInput } from "./error.js";
import { ownTurn } from "./own-turn.js";
import type { MaybePromise } from "./tool.js";

/**
 * How tokens for an MCP server over HTTP are obtained, when it wants some. The default asks a person with `consent`, and
 * introduces itself to any authorization server that takes unknown clients.
 */
export interface OAuthOptions {
  /** Shows the authorization server's page: `popup()`, `extension()` or `loopback()` of `crablet/oauth`, or one's own. */
  readonly consent?: OAuthConsent;
  /** The client, where the authorization server knows it already. Comes before every other way to be known. */
  readonly client?: OAuthClient;
  /**
   * The `https` address of a client-id metadata document that describes this client: its id for authorization servers that
   * support that.
   */
  readonly clientMetadataUrl?: string | URL;
  /** What an authorization server that registers the client shows to the person. Default `crablet`. */
  readonly clientName?: string;
  /** The scopes to ask for where the server's challenge names none. Default: all that its metadata lists. */
  readonly scopes?: readonly string[];
  /** `client-credentials`: the client acts for itself, with the secret or the key of `client`, and nobody is asked. */
  readonly grant?: "authorization-code" | "client-credentials";
  /**
   * Supplies a signed assertion in place of a person's consent (RFC 7523), such as a workload's identity token; or, with
   * `identityProvider`, the person's identity token. Needs `client`. What it throws fails the authorization.
   */
  readonly assertion?: (request: OAuthAssertionRequest) => MaybePromise<string>;
  /** Enterprise-managed authorization: the organization's identity provider exchanges the identity token of `assertion`. */
  readonly identityProvider?: OAuthIdentityProvider;
  /** Take nothing but tokens that are bound to a key of this page or process (DPoP). Default: where the server asks for it. */
  readonly dpop?: boolean;
  /** Keeps tokens and registrations, which are secret. Default: in memory, as long as the connection lives. */
  readonly store?: OAuthStore;
}

/** A client that an authorization server knows. */
export interface OAuthClient {
  readonly id: string;
  /** Only where nobody else can read it: not in a page. */
  readonly secret?: string;
  /** A private key with which the client proves itself (`private_key_jwt`): PKCS #8 in PEM. */
  readonly privateKey?: {
    readonly pem: string;
    /** Default `ES256`. */
    readonly algorithm?: "ES256" | "RS256" | "EdDSA";
    readonly keyId?: string;
  };
  /** The authorization server that knows it. It is not shown to another. */
  readonly issuer?: string;
}

/** The identity provider of an organization, and what it knows this client as. */
export interface OAuthIdentityProvider {
  readonly tokenEndpoint: string;
  readonly clientId: string;
  readonly clientSecret?: string;
}

/** What a token is asked for, so that its supplier can name the right audience. */
export interface OAuthAssertionRequest {
  /** The authorization server. */
  readonly issuer: string;
  readonly tokenEndpoint: string;
  /** The MCP server. */
  readonly resource?: string;
  /** Separated by spaces; may be empty. */
  readonly scope: string;
}

/** Shows a page of an authorization server to a person, and learns the address that the person is sent back to. */
export interface OAuthConsent {
  /** The address that people are sent back to. A function is called once for each authorization, before `authorize`. */
  readonly redirectUrl: string | URL | (() => MaybePromise<string | URL>);
  /**
   * Shows the page and resolves with the whole address that the person came back to. What it throws ends the authorization
   * with kind `auth`. The signal aborts when nobody waits any more, and after ten minutes.
   */
  authorize(url: URL, context: { readonly signal: AbortSignal }): MaybePromise<string | URL>;
}

/**
 * Keeps tokens by name. Names hold the addresses of the authorization server and of the MCP server; values are JSON texts
 * that hold secrets. What it throws is taken for nothing being kept.
 */
export interface OAuthStore {
  /** The value of that name; nothing when there is none. */
  get(key: string): MaybePromise<string | undefined | null>;
  /** Keeps a value in place of the one before. It is awaited before the token is used. */
  set(key: string, value: string): MaybePromise<unknown>;
  /** Forgets a value; there may be none. */
  delete(key: string): MaybePromise<unknown>;
}

/** @internal What the module is told of the options: all that is no function. */
export function authConfigOf(auth: OAuthOptions): Record<string, unknown> {
  const { client, clientName, scopes, dpop, identityProvider, assertion } = auth;
  if ((identityProvider || auth.grant === "client-credentials" || assertion) && !client)
    throw invalidInput("this grant needs `client`: the id under which the authorization server knows the client");
  if (identityProvider && !assertion)
    throw invalidInput("`identityProvider` needs `assertion`, which supplies the person's identity token");
  return {
    grant: identityProvider ? "enterprise" : assertion ? "assertion" : auth.grant,
    client,
    clientMetadataUrl: auth.clientMetadataUrl && String(auth.clientMetadataUrl),
    clientName,
    scopes,
    dpop,
    identityProvider,
    hasConsent: auth.consent !== undefined,
    hasStore: auth.store !== undefined,
  };
}

/** @internal Answers a question of the module. */
export function answerAuth(auth: OAuthOptions | undefined, question: string): CoreExecution {
  const controller = new AbortController();
  const result = answer(auth ?? {}, JSON.parse(question), controller.signal);
  return { result, cancel: () => controller.abort() };
}

async function answer(
  { consent, store, assertion }: OAuthOptions,
  question: CoreAuthQuestion,
  signal: AbortSignal,
): Promise<string | undefined> {
  await ownTurn();
  switch (question.type) {
    case "redirect-url": {
      const url = consent?.redirectUrl;
      return String(typeof url === "function" ? await url() : url);
    }
    case "authorize":
      return String(await consent?.authorize(new URL(question.url), { signal }));
    case "assertion": {
      const { type: _, ...request } = question;
      return await assertion?.(request);
    }
    case "load":
      return (await store?.get(question.key)) ?? undefined;
    case "save":
      await (question.value === null ? store?.delete(question.key) : store?.set(question.key, question.value));
      return undefined;
  }
}
