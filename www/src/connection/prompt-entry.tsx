// One prompt of a server: its arguments, the messages it gives, and the way of these into the message field.
import { useSignal } from "@preact/signals";
import type { McpPrompt, McpPromptResult } from "crablet";
import { useRef } from "preact/hooks";
import { draft } from "../chat/draft";
import { textOf } from "../chat/tool-output";
import { ToolResult } from "../chat/tool-result";
import { Field } from "../ui/field";
import { fillPrompt, partsOf, suggest } from "./server-offers";
import { serverOf, type ServerSettings } from "./server-settings";
import { Trial } from "./trial";

export function PromptEntry({ prompt, settings }: { readonly prompt: McpPrompt; readonly settings: ServerSettings }) {
  const values = useSignal<Readonly<Record<string, string>>>({});
  const suggestions = useSignal<Readonly<Record<string, readonly string[]>>>({});
  const asked = useRef<AbortController>(undefined);
  const look = (name: string) => {
    // What was typed before it is answered asks anew.
    asked.current?.abort();
    asked.current = new AbortController();
    const { signal } = asked.current;
    const { [name]: value = "", ...others } = values.value;
    const reference = { type: "ref/prompt", name: prompt.name } as const;
    void suggest(serverOf(settings), reference, { name, value }, given(others), signal).then((found) => {
      if (!signal.aborted) suggestions.value = { ...suggestions.value, [name]: found };
    });
  };
  const write = (name: string, value: string) => {
    values.value = { ...values.value, [name]: value };
    look(name);
  };
  return (
    <details class="offer">
      <summary>
        <span class="offer-name">{prompt.title ?? prompt.name}</span>
        {prompt.description && <p>{prompt.description}</p>}
      </summary>
      <Trial
        verb="Fill it in"
        ask={(signal) => fillPrompt(serverOf(settings), prompt.name, given(values.value), signal)}
        show={(result) => <Messages result={result} />}
      >
        {prompt.arguments?.map(({ name, description, required }) => (
          <Field
            key={name}
            id={`prompt-${settings.name}-${prompt.name}-${name}`}
            label={name}
            optional={required !== true}
            placeholder={description ?? ""}
            value={values.value[name] ?? ""}
            suggestions={suggestions.value[name] ?? []}
            onInput={(value) => write(name, value)}
            onFocus={() => look(name)}
          />
        ))}
      </Trial>
    </details>
  );
}

/** The arguments without those that were left empty. */
function given(values: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
}

function Messages({ result: { messages } }: { readonly result: McpPromptResult }) {
  const isWritten = useSignal(false);
  const write = () => {
    const texts = messages.filter(({ role }) => role === "user").map(({ content }) => textOf(partsOf([content])));
    draft.value = texts.filter((text) => text !== "").join("\n\n");
    isWritten.value = true;
  };
  return (
    <div class="tool-body">
      <ol class="prompt-messages">
        {messages.map(({ role, content }, index) => (
          <li key={index}>
            <strong>{role === "user" ? "User" : "Assistant"}</strong>
            <ToolResult content={partsOf([content])} value={undefined} />
          </li>
        ))}
      </ol>
      <button type="button" class="quiet-button" onClick={write}>
        Use as my message
      </button>
      <p class="help" role="status">
        {isWritten.value && "It stands in the message field, to be changed and sent."}
      </p>
    </div>
  );
}
