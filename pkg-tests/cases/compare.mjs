// What was expected against what came, by the rules of tests/wire/compare.rs: members that are absent or null are not compared;
// a call that is expected as invalid may be left out but not run; one without input at the output limit may be invalid.
import { isDeepStrictEqual } from "node:util";

/** Every difference, in words. */
export function differences(expected, observed) {
  const found = [];
  for (const [wanted, got] of [
    ["text", "text"],
    ["thinking", "reasoning"],
    ["reasoning", "reasoning"],
    ["stopReason", "stopReason"],
    ["refusal", "refusal"],
  ]) {
    member(expected, wanted, observed, got, found);
  }
  // What failed has no blocks to compare.
  const counted = observed.blocks === undefined ? [] : ["blocks", "citations", "signatures", "encryptedReasoning"];
  for (const name of counted) member(expected, name, observed, name, found);
  if (expected.order !== undefined) {
    // Cases call a tool call `tool`.
    const order = observed.blocks?.map((block) => (block === "tool_use" ? "tool" : block));
    member(expected, "order", { order }, "order", found);
  }
  for (const name of ["input", "output", "cacheRead", "cacheWrite", "reasoning"]) {
    member(expected.usage ?? {}, name, observed.usage, name, found);
  }
  member(expected.replay ?? {}, "reasoning_details", observed, "details", found);
  if (expected.toolCalls !== undefined) compareCalls(expected.toolCalls, observed, found);
  compareErrors(expected, observed.error, found);
  return found;
}

/** The same for a bare event stream. */
export function sseDifferences(expected, events, { isFine }) {
  const found = [];
  const observed = {
    events: events.map(({ event, data, id = null }) => ({ event, data, id })),
    lastEventIdAtEvent: events.map(({ lastEventId }) => lastEventId),
  };
  if (events.length > 0) observed.lastEventId = events.at(-1).lastEventId;
  // Between two retries in one chunk only the last one is seen, so they are compared where the cuts are fine enough.
  if (isFine) observed.retryValues = [...new Set(events.flatMap(({ retry }) => (retry === undefined ? [] : [retry])))];
  for (const name of Object.keys(observed)) member(expected, name, observed, name, found);
  return found;
}

/** What a request lacks of what is expected of it. `facts` are for people. */
export function unmet(wanted, body) {
  const found = [];
  for (const [name, value] of Object.entries(wanted)) {
    const ordered = /^(.*)_contains_in_order$/.exec(name)?.[1];
    const contained = /^(.*)_contains$/.exec(name)?.[1];
    let isMet;
    if (name === "facts") isMet = true;
    else if (name === "messages_last") isMet = isDeepStrictEqual(body.messages?.at(-1), value);
    else if (ordered !== undefined) isMet = isInOrder(value, body[ordered] ?? []);
    else if (contained !== undefined) isMet = (body[contained] ?? []).some((given) => isDeepStrictEqual(given, value));
    else isMet = isDeepStrictEqual(body[name], value);
    if (!isMet) found.push(`expected ${name}: ${JSON.stringify(value)}, sent ${JSON.stringify(body)}`);
  }
  return found;
}

/** Whether the wanted objects are in the list, in this order, each with at least these members. */
function isInOrder(wanted, given) {
  const rest = given[Symbol.iterator]();
  return wanted.every((object) => {
    for (const candidate of rest) {
      if (Object.entries(object).every(([name, value]) => isDeepStrictEqual(candidate[name], value))) return true;
    }
    return false;
  });
}

function member(expected, expectedName, observed, observedName, found) {
  const wanted = expected[expectedName];
  if (wanted === undefined || wanted === null) return;
  const got = observed[observedName];
  if (!isDeepStrictEqual(wanted, got))
    found.push(`${expectedName}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`);
}

function compareCalls(expected, { toolCalls: observed, executed, stopReason }, found) {
  const isCut = ({ cutBeforeInput }) => stopReason === "length" && cutBeforeInput === true;
  const hasInput = (call) => !isDeepStrictEqual(call.arguments, {});
  const wasCut = (call) => !hasInput(call) && observed.some((got) => isCut(got) && got.name === call.name);
  const wanted = expected.filter((call) => call.invalid === undefined && !wasCut(call));
  const got = observed.filter((call) => call.invalid === undefined);
  if (wanted.length !== got.length) {
    found.push(`calls that run: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`);
    return;
  }
  for (const [number, call] of wanted.entries()) {
    const { id, name, arguments: input } = got[number];
    const isId = call.id === undefined || call.id === null || call.id === "<generated>" ? Boolean(id) : id === call.id;
    // The free text of a tool that takes no object is the member `input` of one.
    const wantedInput = call.customInput === undefined ? call.arguments : { input: call.customInput };
    if (!isId || name !== call.name || !isDeepStrictEqual(input, wantedInput)) {
      found.push(`call: expected ${JSON.stringify(call)}, got ${JSON.stringify(got[number])}`);
    }
  }
  const ids = got.map(({ id }) => id);
  if (new Set(ids).size !== ids.length) found.push("two calls have the same id");
  const broken = (calls) => calls.filter((call) => call.invalid !== undefined && !isCut(call)).length;
  if (broken(observed) > broken(expected)) found.push(`calls that are malformed: ${JSON.stringify(observed)}`);
  const ranWrongly = executed.filter((id) => !ids.includes(id));
  if (ranWrongly.length > 0) found.push(`calls that must not run did: ${ranWrongly.join(", ")}`);
}

function compareErrors(expected, observed, found) {
  const wanted = expected.error;
  if (wanted === undefined || wanted === null) {
    if (expected.stopReason !== "error" && observed !== null)
      found.push(`an unexpected error: ${JSON.stringify(observed)}`);
    return;
  }
  for (const name of ["kind", "status", "code", "retryable", "retry_after_s"])
    member(wanted, name, observed ?? {}, name, found);
  if (!observed?.message.includes(wanted.message_contains ?? "")) {
    found.push(`the message lacks ${JSON.stringify(wanted.message_contains)}: ${observed?.message}`);
  }
}
