/** All of an iterable. */
export async function collect(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}

/** The types of events. */
export function types(events) {
  return events.map(({ type }) => type);
}

/** A model that never stops by itself. Remembers its signals and what it gave. */
export function endless() {
  const signals = [];
  const yielded = [];
  async function* model(_request, { signal }) {
    signals.push(signal);
    while (!signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      yielded.push("word ");
      yield "word ";
    }
  }
  return Object.assign(model, { signals, yielded });
}

/** A promise with its resolve function. */
export function deferred() {
  let resolve;
  const promise = new Promise((given) => {
    resolve = given;
  });
  return { promise, resolve };
}
