// How IndexedDB keeps the same two conversations, in a real Chromium: runs in the page of `page`, which can import the package.

/** Everything in the database, as JSON. */
export const kept = (page) =>
  page.evaluate(async () => {
    const { indexedDbStore } = await import("/crablet/stores.js");
    const { keepTwo } = await import("/conversations.mjs");
    await keepTwo(indexedDbStore());
    const opened = indexedDB.open("crablet");
    const answered = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
    const database = await answered(opened);
    const stores = {};
    for (const name of database.objectStoreNames) {
      const store = database.transaction(name).objectStore(name);
      const [keys, values] = await Promise.all([answered(store.getAllKeys()), answered(store.getAll())]);
      const { keyPath, autoIncrement } = store;
      stores[name] = { keyPath, autoIncrement, records: Object.fromEntries(keys.map((key, at) => [key, values[at]])) };
    }
    const { version } = database;
    database.close();
    return { version, stores };
  });

/** Opens a database that an older version made, as the present code does; gives what was wrong. */
export const goesOn = (page, older) =>
  page.evaluate(async ({ version, stores }) => {
    const { indexedDbStore } = await import("/crablet/stores.js");
    const { CONVERSATIONS } = await import("/conversations.mjs");
    const request = indexedDB.open("older", version);
    request.onupgradeneeded = () => {
      for (const [name, { keyPath, autoIncrement, records }] of Object.entries(stores)) {
        const store = request.result.createObjectStore(name, { keyPath, autoIncrement });
        for (const [key, value] of Object.entries(records)) store.put(value, key);
      }
    };
    await new Promise((resolve) => (request.onsuccess = resolve));
    request.result.close();
    const store = indexedDbStore({ database: "older" });
    const seen = { list: await store.list() };
    const wanted = { list: Object.keys(CONVERSATIONS).sort() };
    for (const [id, { version, entries }] of Object.entries(CONVERSATIONS)) {
      await store.append(id, version, ["more"]);
      seen[id] = await store.read(id);
      wanted[id] = { version: version + 1, entries: [...entries, "more"] };
    }
    const [is, shouldBe] = [JSON.stringify(seen), JSON.stringify(wanted)];
    return is === shouldBe ? undefined : `${is} is kept, and not ${shouldBe}`;
  }, older);
