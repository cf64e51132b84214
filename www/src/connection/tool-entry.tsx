// One tool of a server: what it is for, what it takes, and a call by hand.
import { useSignal } from "@preact/signals";
import { CrabletError, type McpResult, type McpTool } from "crablet";
import { ToolResult } from "../chat/tool-result";
import { serverOf, type ServerSettings } from "./server-settings";
import { sampleInput } from "./sample-input";
import { callTool, partsOf } from "./server-offers";
import { Trial } from "./trial";

export function ToolEntry({ tool, settings }: { readonly tool: McpTool; readonly settings: ServerSettings }) {
  return (
    <details class="offer">
      <summary>
        <code>{tool.name}</code>
        <Hints tool={tool} />
        <p>{tool.description}</p>
      </summary>
      <TryTool tool={tool} settings={settings} />
    </details>
  );
}

/** The tool's title and what the server says of its effects: hints, which nothing is decided by. */
function Hints({ tool }: { readonly tool: McpTool }) {
  const { title, readOnlyHint, destructiveHint, openWorldHint } = tool.annotations ?? {};
  const name = tool.title ?? title;
  const words = [
    readOnlyHint === true && "only reads",
    readOnlyHint !== true && destructiveHint === true && "may destroy",
    openWorldHint === true && "reaches out",
  ].filter((word) => word !== false);
  if (name === undefined && words.length === 0) return null;
  return (
    <p class="tool-hints">
      {name}
      {words.map((word) => (
        <span key={word} class="tool-server">
          {word}
        </span>
      ))}
    </p>
  );
}

function TryTool({ tool, settings }: { readonly tool: McpTool; readonly settings: ServerSettings }) {
  const input = useSignal(JSON.stringify(sampleInput(tool.inputSchema), undefined, 2));
  const id = `try-${settings.name}-${tool.name}`;
  return (
    <Trial
      verb="Call it"
      ask={async (signal) => callTool(serverOf(settings), tool.name, parsed(input.value), signal)}
      show={(result) => <ResultView result={result} />}
    >
      <label for={id}>Input, as JSON</label>
      <textarea
        id={id}
        rows={4}
        spellcheck={false}
        value={input.value}
        onInput={(event) => {
          input.value = event.currentTarget.value;
        }}
      />
    </Trial>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = `The input is not JSON: ${error instanceof Error ? error.message : String(error)}`;
    throw new CrabletError({ kind: "invalid-input", message });
  }
}

function ResultView({ result: { content, structuredContent, isError } }: { readonly result: McpResult }) {
  return (
    <div class="tool-body" data-outcome={isError ? "error" : "ok"}>
      <strong>{isError ? "The tool failed" : "Result"}</strong>
      <ToolResult content={partsOf(content)} value={structuredContent} />
    </div>
  );
}
