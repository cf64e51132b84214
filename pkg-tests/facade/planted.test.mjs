// The search for secrets finds them, or the tests that use it prove nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findsNothing, formsOf, leakIn, planted, plantedIn, shown } from "../lib/planted.mjs";

test("a secret is found in whatever form and place it shows", async () => {
  const secret = planted("key");
  for (const form of formsOf(secret)) assert.ok(leakIn(`before ${form} behind`), form);
  for (const before of ["", "u", "us"]) {
    const basic = Buffer.from(`${before}${secret}`).toString("base64");
    assert.ok(leakIn(basic), basic);
  }
  assert.ok(leakIn(Buffer.from(secret).toString("hex")));
  assert.ok(leakIn("cut after planted-k"));
  assert.equal(leakIn("a tree was planted-"), undefined);
  assert.deepEqual(plantedIn(`one ${secret} two`), [secret]);

  const error = new Error("it failed", { cause: { deep: [{ headers: new Map([["authorization", secret]]) }] } });
  assert.ok(leakIn(shown(error)), "the cause of an error");
  assert.ok(leakIn(shown(Object.defineProperty({}, "hidden", { value: secret }))), "a member that is not shown");
  for (const leak of [
    () => console.warn({ secret }),
    (see) => see("event", { type: "step-retry", error: { message: secret } }),
    () => process.emitWarning(`deprecated: ${secret}`) ?? new Promise(setImmediate),
  ]) {
    await assert.rejects(
      findsNothing("a leak", async (see) => leak(see)),
      /a leak: in the/,
    );
  }
});
