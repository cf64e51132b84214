// Who may come in: those who know the password. A stand-in for the login that your site has; without one, everybody would
// speak to the model at your expense.
import type { Env } from "./env.js";

const COOKIE = "crablet";

/** In seconds: a month. */
const MAX_AGE = 30 * 24 * 60 * 60;

/**
 * Who asks, by the cookie of a browser or the header `authorization: Bearer PASSWORD` of a program; `undefined` when he may not
 * come in. Here all who know the password are one user. Of many, each has conversations of his own by what this returns.
 */
export async function userOf(request: Request, env: Env): Promise<string | undefined> {
  return (await isAllowed(request, env)) ? "everybody" : undefined;
}

async function isAllowed(request: Request, env: Env): Promise<boolean> {
  const cookies = request.headers.get("cookie") ?? "";
  const cookie = new RegExp(`(?:^|; )${COOKIE}=([^;]*)`).exec(cookies)?.[1];
  if (cookie !== undefined && (await isSame(cookie, await proofOf(env.PASSWORD)))) return true;
  const bearer = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1];
  return bearer !== undefined && (await isSame(bearer, env.PASSWORD));
}

/** Gives the cookie for the password of a form. */
export async function enter(request: Request, env: Env): Promise<Response> {
  const password = (await request.formData()).get("password");
  if (typeof password !== "string" || !(await isSame(password, env.PASSWORD)))
    return new Response("This is not the password.", { status: 403 });
  const cookie = `${COOKIE}=${await proofOf(password)}; Path=/; Max-Age=${MAX_AGE}; HttpOnly; Secure; SameSite=Strict`;
  return new Response(null, { status: 303, headers: { location: "/", "set-cookie": cookie } });
}

/** Says that its owner knew the password, without holding it. */
async function proofOf(password: string): Promise<string> {
  const key = await crypto.subtle.importKey("raw", bytes(password), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const proof = await crypto.subtle.sign("HMAC", key, bytes("crablet chat"));
  return [...new Uint8Array(proof)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** In a time that says nothing of the two. An empty password opens nothing. */
async function isSame(given: string, wanted: string): Promise<boolean> {
  const [one, other] = await Promise.all([given, wanted].map((text) => crypto.subtle.digest("SHA-256", bytes(text))));
  return wanted !== "" && crypto.subtle.timingSafeEqual(one as ArrayBuffer, other as ArrayBuffer);
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
