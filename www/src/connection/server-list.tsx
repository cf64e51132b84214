// The MCP servers, their state and their tools, and the form that adds one.
import { useSignal } from "@preact/signals";
import { wordsFor } from "../ui/error-words";
import { Field } from "../ui/field";
import { AlertIcon, CheckIcon, ChevronIcon, CloseIcon, PlugIcon, PlusIcon, RetryIcon } from "../ui/icons";
import { DEFAULT_SHIM_URL, problemOf, type ServerSettings } from "./server-settings";
import { addServer, connect, removeServer, serverStates, type ServerState } from "./servers";
import { ToolEntry } from "./tool-entry";
import { asksBeforeTools, serverSettings } from "./settings";

export function ServerList() {
  const isAdding = useSignal(false);
  return (
    <section class="panel-section" aria-labelledby="servers-heading">
      <div class="section-head">
        <h3 id="servers-heading">Tool servers</h3>
        {!isAdding.value && (
          <button type="button" class="quiet-button" onClick={() => (isAdding.value = true)}>
            <PlusIcon /> Add
          </button>
        )}
      </div>
      {serverSettings.value.length === 0 && !isAdding.value && (
        <p class="help">None yet. Add an MCP server by its address, or one on this machine through crablet-shim.</p>
      )}
      <ul class="servers">
        {serverSettings.value.map((settings) => (
          <ServerRow key={settings.name} settings={settings} state={serverStates.value.get(settings.name)} />
        ))}
      </ul>
      {isAdding.value && <ServerForm onClose={() => (isAdding.value = false)} />}
      <label class="check">
        <input
          type="checkbox"
          checked={asksBeforeTools.value}
          onChange={(event) => {
            asksBeforeTools.value = event.currentTarget.checked;
          }}
        />
        <span>Ask me before each tool call</span>
      </label>
    </section>
  );
}

function ServerRow({
  settings,
  state,
}: {
  readonly settings: ServerSettings;
  readonly state: ServerState | undefined;
}) {
  return (
    <li class="server" data-server={settings.name} data-state={state?.status ?? "idle"}>
      <div class="server-head">
        <StateMark state={state} />
        <span class="server-name">{settings.name}</span>
        <span class="server-kind">{settings.type === "shim" ? "shim" : "http"}</span>
        <button
          type="button"
          class="icon-button small"
          onClick={() => void connect(settings)}
          aria-label={`Connect ${settings.name} again`}
          title="Connect again"
        >
          <RetryIcon />
        </button>
        <button
          type="button"
          class="icon-button small"
          onClick={() => removeServer(settings.name)}
          aria-label={`Remove ${settings.name}`}
          title="Remove"
        >
          <CloseIcon />
        </button>
      </div>
      <p class="server-address">{settings.url || DEFAULT_SHIM_URL}</p>
      {state?.status === "failed" && (
        <div class="server-error" role="alert">
          <strong>{wordsFor(state.error).title}.</strong> {state.error.message}
        </div>
      )}
      {state?.status === "ready" && (
        <details class="tools">
          <summary>
            <ChevronIcon />
            {state.tools.length} {state.tools.length === 1 ? "tool" : "tools"}
          </summary>
          <ul>
            {state.tools.map((tool) => (
              <li key={tool.name}>
                <ToolEntry tool={tool} settings={settings} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}

const STATE_WORDS = { idle: "not connected", connecting: "connecting", ready: "connected", failed: "failed" };

function StateMark({ state }: { readonly state: ServerState | undefined }) {
  const status = state?.status ?? "idle";
  return (
    <span class="status-mark" data-state={status}>
      {status === "ready" ? (
        <CheckIcon />
      ) : status === "failed" ? (
        <AlertIcon />
      ) : status === "connecting" ? (
        <i class="spinner" />
      ) : (
        <PlugIcon />
      )}
      <span class="visually-hidden">{STATE_WORDS[status]}</span>
    </span>
  );
}

function ServerForm({ onClose }: { readonly onClose: () => void }) {
  const type = useSignal<ServerSettings["type"]>("http");
  const name = useSignal("");
  const url = useSignal("");
  const token = useSignal("");
  const problem = useSignal<string | undefined>(undefined);

  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const base = { name: name.value.trim(), url: url.value.trim() };
    const settings: ServerSettings =
      type.value === "http" ? { type: "http", ...base } : { type: "shim", ...base, token: token.value.trim() };
    problem.value = problemOf(
      settings,
      serverSettings.value.map((server) => server.name),
    );
    if (problem.value) return;
    addServer(settings);
    onClose();
  };

  return (
    <form class="server-form" onSubmit={submit} aria-label="Add a tool server">
      <fieldset class="segments">
        <legend class="visually-hidden">How it is reached</legend>
        {(["http", "shim"] as const).map((choice) => (
          <label key={choice}>
            <input
              type="radio"
              name="server-type"
              checked={type.value === choice}
              onChange={() => (type.value = choice)}
            />
            <span>{choice === "http" ? "By address" : "Through the shim"}</span>
          </label>
        ))}
      </fieldset>
      <Field
        id="server-name"
        label={type.value === "http" ? "Name" : "Server name, as the shim knows it"}
        value={name.value}
        onInput={(value) => (name.value = value)}
      />
      <Field
        id="server-url"
        label={type.value === "http" ? "Address" : "Shim address"}
        isAddress
        optional={type.value === "shim"}
        placeholder={type.value === "http" ? "https://example.com/mcp" : DEFAULT_SHIM_URL}
        value={url.value}
        onInput={(value) => (url.value = value)}
      />
      {type.value === "shim" && (
        <Field
          id="server-token"
          label="Token"
          type="password"
          value={token.value}
          onInput={(value) => (token.value = value)}
        />
      )}
      {type.value === "shim" && (
        <p class="help">
          In a terminal: <code>crablet-shim grant --origin {location.origin} --server NAME</code> prints the token.
        </p>
      )}
      {problem.value && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <div class="form-buttons">
        <button type="submit" class="button">
          Connect
        </button>
        <button type="button" class="quiet-button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}
