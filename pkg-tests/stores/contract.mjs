// What every store keeps, run wherever the store lives: Node, a page, a worker, an extension, a Durable Object.

function same(given, expected, what) {
  const [left, right] = [JSON.stringify(given), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${what}: ${left.slice(0, 200)} is not ${right.slice(0, 200)}`);
}

async function refused(writing, what) {
  const kind = await writing.then(
    (version) => `version ${version}`,
    (error) => error.kind ?? `${error}`,
  );
  same(kind, "conflict", what);
}

/** @param {import("crablet").SessionStore} store an empty one */
export async function keepsTheContract(store) {
  same(await store.read("a"), undefined, "nothing is there");
  await refused(store.append("a", 1, ["early"]), "an addition to nothing");
  same(await store.replace("a", 0, ['{"format":1}']), 1, "the first version");
  await refused(store.replace("a", 0, ["again"]), "a second beginning");
  same(await store.append("a", 1, ["two", '"🦀 д"']), 2, "an addition");
  await refused(store.append("a", 1, ["second writer"]), "a second writer");
  same(await store.append("a", 2, ["three"]), 3, "another addition");
  same(await store.read("a"), { version: 3, entries: ['{"format":1}', "two", '"🦀 д"', "three"] }, "what was added");
  const long = `{"format":2,"long":"${"a🦀ж".repeat(200_000)}"}`;
  same(await store.replace("a", 3, [long]), 4, "a replacement");
  await refused(store.append("a", 3, ["second writer"]), "a writer of the version before");
  await refused(store.append("a", 1, ["from long ago"]), "a writer from long ago");
  same(await store.read("a"), { version: 4, entries: [long] }, "a value beyond the limit of one");
  for (let version = 4; version < 9; version += 1) await store.append("a", version, [`${version}`]);
  same((await store.read("a")).entries.slice(1), ["4", "5", "6", "7", "8"], "additions to a long one");

  const race = await Promise.allSettled([1, 2, 3].map((writer) => store.append("a", 9, [`${writer}`])));
  same(race.filter(({ status }) => status === "fulfilled").length, 1, "one of three writers at once");

  const odd = "user:7/чат %2F ..";
  await store.replace(odd, 0, ['{"format":3}']);
  same(await store.list(), ["a", odd], "the ids");
  await store.delete("a");
  await store.delete("a");
  same(await store.read("a"), undefined, "what was deleted");
  await refused(store.append("a", 10, ["it is gone"]), "an addition to what was deleted");
  same(await store.list(), [odd], "the ids that are left");
  same((await store.read(odd)).entries, ['{"format":3}'], "the other is as it was");
  await store.delete(odd);
}
