// The inspector: the conversation as a file and as a tree, where the time went, and every event as it came.
import { useSignal } from "@preact/signals";
import { eventLog, isEmpty } from "../chat/conversation";
import { loadFromFile, saveToFile } from "../chat/session-file";
import { infoOf } from "../ui/error-words";
import { ChevronIcon } from "../ui/icons";
import { Scrollable } from "../ui/scrollable";
import type { LogEntry } from "./event-log";
import { ExchangeList } from "./exchange-list";
import { Newest } from "./newest";
import { SessionTree } from "./session-tree";
import { milliseconds } from "./units";
import { totalOf, usageWords } from "./usage";
import { runsOf, type RunSpans, type Span } from "./waterfall";

export function InspectorPanel() {
  const { entries } = eventLog.value;
  const runs = runsOf(entries);
  return (
    <>
      <SessionFile />
      <SessionTree />
      {runs.length === 0 ? (
        <div class="panel-section">
          <p class="help">
            Send a message: its model calls, tool calls and events appear here, with the time each took.
          </p>
        </div>
      ) : (
        <Recorded runs={runs} entries={entries} />
      )}
    </>
  );
}

/** The conversation as a file. */
function SessionFile() {
  const problem = useSignal<string | undefined>(undefined);
  const onFile = async (input: HTMLInputElement) => {
    const file = input.files?.[0];
    input.value = "";
    if (!file) return;
    problem.value = undefined;
    await loadFromFile(file).catch((error: unknown) => (problem.value = infoOf(error).message));
  };
  return (
    <section class="panel-section" aria-labelledby="session-heading">
      <h3 id="session-heading">Conversation</h3>
      <div class="form-buttons">
        <button type="button" class="quiet-button" disabled={isEmpty.value} onClick={saveToFile}>
          Save to a file
        </button>
        <label class="quiet-button file-button">
          Load a file
          <input type="file" accept="application/json,.json" onChange={(event) => void onFile(event.currentTarget)} />
        </label>
      </div>
      <p class="help">A file holds the messages, never a key or a token. Any model can go on with it.</p>
      {problem.value && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
    </section>
  );
}

function Recorded({ runs, entries }: { readonly runs: readonly RunSpans[]; readonly entries: readonly LogEntry[] }) {
  return (
    <>
      <section class="panel-section" aria-labelledby="timeline-heading">
        <h3 id="timeline-heading">Timeline</h3>
        {runs.length > 1 && <Amounts title="All runs" words={usageWords(totalOf(runs.map(({ usage }) => usage)))} />}
        {runs.map((run) => (
          <Waterfall key={run.runId} run={run} />
        ))}
      </section>
      <ExchangeList />
      <section class="panel-section" aria-labelledby="events-heading">
        <h3 id="events-heading">Events</h3>
        <EventList entries={entries} />
      </section>
    </>
  );
}

/** Tokens and cost. */
function Amounts({ title, words }: { readonly title: string; readonly words: string }) {
  return (
    <p class="amounts">
      <strong>{title}</strong> {words}
    </p>
  );
}

function Waterfall({ run }: { readonly run: RunSpans }) {
  return (
    <>
      {run.usage && <Amounts title="Run" words={usageWords(run.usage)} />}
      <Spans run={run} />
    </>
  );
}

function Spans({ run }: { readonly run: RunSpans }) {
  return (
    <ol class="waterfall" aria-label={`Run of ${milliseconds(run.duration)}`}>
      {run.spans.map((span) => (
        <SpanRow key={span.id} span={span} duration={Math.max(run.duration, 1)} />
      ))}
      <li class="waterfall-scale" aria-hidden="true">
        <span>0</span>
        <span>{milliseconds(run.duration)}</span>
      </li>
    </ol>
  );
}

function SpanRow({ span, duration }: { readonly span: Span; readonly duration: number }) {
  const percent = (time: number) => `${Math.min(100, (time / duration) * 100)}%`;
  const wait = span.firstOutput === undefined ? 0 : span.firstOutput - span.start;
  const length = Math.max(span.end - span.start, 0);
  return (
    <li class="span" data-kind={span.kind} data-outcome={span.outcome}>
      <span class="span-label">{span.label}</span>
      <span class="span-track">
        <span class="span-bar" style={{ left: percent(span.start), width: percent(length) }}>
          {wait > 0 && length > 0 && <span class="span-wait" style={{ width: `${(wait / length) * 100}%` }} />}
        </span>
      </span>
      <span class="span-time" title={detailsOf(span, wait)}>
        {milliseconds(length)}
      </span>
    </li>
  );
}

/** What a span says when it is pointed at. */
function detailsOf({ usage }: Span, wait: number): string | undefined {
  const words = [
    ...(wait > 0 ? [`first output after ${milliseconds(wait)}`] : []),
    ...(usage ? [usageWords(usage)] : []),
  ];
  return words.length > 0 ? words.join("; ") : undefined;
}

function EventList({ entries }: { readonly entries: readonly LogEntry[] }) {
  const origin = entries[0]?.at ?? 0;
  return (
    <Newest
      entries={entries}
      show={(shown) => (
        <ol class="events">
          {shown.map((entry) => (
            <li key={entry.id}>
              <details>
                <summary>
                  <ChevronIcon />
                  <code>{entry.event.type}</code>
                  {entry.count > 1 && <span class="event-count">× {entry.count}</span>}
                  <span class="event-time">{milliseconds(entry.at - origin)}</span>
                </summary>
                <Scrollable>{JSON.stringify(entry.event, undefined, 2)}</Scrollable>
              </details>
            </li>
          ))}
        </ol>
      )}
    />
  );
}
