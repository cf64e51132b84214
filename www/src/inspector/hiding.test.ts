import { expect, test } from "vitest";
import { HIDDEN, secretsOf, withoutSecrets } from "./hiding";

const SECRET = 'planted-"+%=-é-value';

test("what headers and the address of a request carry is secret, and nothing else", () => {
  const address = `https://ada%2Blovelace:${encodeURIComponent(SECRET)}@example.com/v1?alt=sse-and-more&v=1&any=${encodeURIComponent(SECRET)}`;
  const headers = new Headers({ authorization: "Bearer planted-bearer", cookie: "a=planted-cookie; b=1" });
  headers.set("user-agent", "a-browser-of-somebody");
  const secrets = secretsOf(address, headers);
  for (const secret of ["planted-bearer", "ada+lovelace", SECRET]) expect(secrets).toContain(secret);
  for (const plain of ["sse-and-more", "1", "Bearer", "a-browser-of-somebody"]) expect(secrets).not.toContain(plain);
});

test("a secret is taken out however a server writes it", () => {
  const bytes = String.fromCharCode(...new TextEncoder().encode(SECRET));
  for (const written of [
    SECRET,
    JSON.stringify({ error: SECRET }),
    JSON.stringify({ error: JSON.stringify({ error: SECRET }) }),
    encodeURIComponent(SECRET),
    String(new URLSearchParams({ key: SECRET })),
    btoa(bytes),
    btoa(bytes).replaceAll("+", "-").replaceAll("/", "_"),
  ]) {
    const clean = withoutSecrets(`refused ${written} here`, [SECRET]);
    expect(clean).toContain(HIDDEN);
    expect(clean).not.toMatch(/planted|cGxhbnRl/);
    expect(clean).toMatch(/^refused .* here$/s);
  }
});

test("of a secret within another nothing is left", () => {
  expect(withoutSecrets("it is planted-one-and-more", ["planted-one", "planted-one-and-more"])).toBe(`it is ${HIDDEN}`);
});
