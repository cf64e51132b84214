// Two conversations that every store is given, in Node and in a page.

const HEADER = '{"format":"crablet-session","version":2}';

/** What each store has of them in the end. */
export const CONVERSATIONS = {
  monday: { version: 2, entries: [HEADER, '{"type":"message","text":"☂ and 𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞"}', '{"type":"state"}'] },
  "user:7/чат.1": { version: 3, entries: [HEADER, '{"type":"message","text":"all of it again"}'] },
};

/** One that grew, and one that was written anew. */
export async function keepTwo(store) {
  const [[first, grown], [second, replaced]] = Object.entries(CONVERSATIONS);
  await store.replace(first, 0, grown.entries.slice(0, 2));
  await store.append(first, 1, grown.entries.slice(2));
  await store.replace(second, 0, [HEADER, '{"type":"message","text":"before"}']);
  await store.append(second, 1, ['{"type":"state"}']);
  await store.replace(second, 2, replaced.entries);
}
