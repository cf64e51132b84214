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

/** The messages of a run, by somebody who sees its events and nothing else. */
export function rebuild(events) {
  const messages = [];
  let results = [];
  const step = (message) => {
    if (message === undefined || message.content.length === 0) return;
    messages.push(message);
    const calls = message.content.filter(({ type }) => type === "tool-call");
    if (calls.length > 0) {
      messages.push({
        role: "tool",
        content: calls.map(({ callId }) => results.find((part) => part.callId === callId)),
      });
    }
    results = [];
  };
  for (const { runId: _run, step: _step, ...event } of events) {
    if (event.type === "message-added") messages.push(event.message);
    if (event.type === "step-start" || event.type === "step-retry") results = [];
    if (event.type === "tool-result") {
      const content = event.content ?? [{ type: "text", text: String(event.output) }];
      results.push({ ...event, content });
    }
    if (event.type === "step-end" || event.type === "run-end") step(event.message);
  }
  return messages;
}
