// One tool call: its name, its arguments as the model writes them, its state, and what it returned.
import { useRef } from "preact/hooks";
import { AlertIcon, CheckIcon, ChevronIcon, PersonIcon, StopIcon } from "../ui/icons";
import { Scrollable } from "../ui/scrollable";
import { decide } from "./conversation";
import { focusPrompt } from "./prompt-field";
import { ownName } from "./tool-name";
import { oneLine, printed, textOf } from "./tool-output";
import { ToolResult } from "./tool-result";
import type { ToolItem, ToolStatus } from "./transcript";

const STATUS_WORDS: Readonly<Record<ToolStatus, string>> = {
  writing: "the model writes the call",
  asking: "waits for you",
  waiting: "about to run",
  running: "running",
  ok: "done",
  error: "failed",
  stopped: "stopped",
};

export function ToolCard({ tool }: { readonly tool: ToolItem }) {
  const isOver = tool.endedAt !== undefined;
  return (
    <>
      <details
        class="tool-card"
        open={tool.status === "asking"}
        data-status={tool.status}
        data-tool={tool.name}
        data-started={tool.startedAt}
        data-ended={tool.endedAt}
      >
        <summary>
          <StatusMark status={tool.status} />
          <span class="tool-name">{ownName(tool.name, tool.server)}</span>
          {tool.server && <span class="tool-server">{tool.server}</span>}
          <span class="tool-preview">{oneLine(tool.status === "error" ? textOf(tool.content) : tool.input)}</span>
          <span class="tool-status">{duration(tool) ?? STATUS_WORDS[tool.status]}</span>
          <ChevronIcon />
        </summary>
        <div class="tool-body">
          <h3>Arguments</h3>
          <Scrollable>{tool.input || "{}"}</Scrollable>
          {tool.progress !== undefined && !isOver && (
            <>
              <h3>Progress</h3>
              <Scrollable>{printed(tool.progress)}</Scrollable>
            </>
          )}
          {tool.status !== "asking" && <Outcome tool={tool} />}
        </div>
      </details>
      {tool.status === "asking" && <Question tool={tool} />}
    </>
  );
}

/** What the call returned, or how far it is. */
function Outcome({ tool }: { readonly tool: ToolItem }) {
  return (
    <>
      <h3>{tool.status === "error" ? "Error" : "Result"}</h3>
      {tool.endedAt !== undefined && tool.status !== "stopped" ? (
        <ToolResult content={tool.content} value={tool.value} />
      ) : (
        <p class="help">{STATUS_WORDS[tool.status]}</p>
      )}
    </>
  );
}

/** Asks the person whether the call may run. */
function Question({ tool }: { readonly tool: ToolItem }) {
  const question = useRef<HTMLDivElement>(null);
  // The buttons are gone then: the focus goes to the next question, or to where one writes.
  const answer = (allow: boolean) => {
    decide(tool.callId, allow);
    const next = [...document.querySelectorAll(".question")].find((other) => other !== question.current);
    if (next) next.querySelector("button")?.focus();
    else focusPrompt();
  };
  return (
    <div class="question" role="alert" ref={question}>
      <p>
        May <code>{ownName(tool.name, tool.server)}</code>
        {tool.server && ` of ${tool.server}`} run with these arguments?
      </p>
      <button type="button" class="button" onClick={() => answer(true)}>
        Allow
      </button>
      <button type="button" class="quiet-button" onClick={() => answer(false)}>
        Deny
      </button>
    </div>
  );
}

function StatusMark({ status }: { readonly status: ToolStatus }) {
  const mark =
    status === "ok" ? (
      <CheckIcon />
    ) : status === "error" ? (
      <AlertIcon />
    ) : status === "stopped" ? (
      <StopIcon />
    ) : status === "asking" ? (
      <PersonIcon />
    ) : (
      <i class="spinner" />
    );
  return (
    <span class="status-mark">
      {mark}
      <span class="visually-hidden">{STATUS_WORDS[status]}</span>
    </span>
  );
}

/** How long the call took; `undefined` while it runs, and where nobody knows. */
function duration(tool: ToolItem): string | undefined {
  if (tool.startedAt === undefined || tool.endedAt === undefined || tool.status === "stopped") return undefined;
  const milliseconds = tool.endedAt - tool.startedAt;
  return milliseconds < 1_000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1_000).toFixed(1)} s`;
}
