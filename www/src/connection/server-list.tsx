// The MCP servers, their state and what they offer.
import { useSignal } from "@preact/signals";
import type { ErrorInfo } from "crablet";
import { shownAddress } from "../inspector/exchange-log";
import { wordsFor } from "../ui/error-words";
import { AlertIcon, CheckIcon, CloseIcon, PlugIcon, PlusIcon, RetryIcon } from "../ui/icons";
import { OfferLists } from "./offer-lists";
import { ServerForm } from "./server-form";
import { DEFAULT_SHIM_URL, type ServerSettings } from "./server-settings";
import { connect, removeServer, serverStates, type ServerState } from "./servers";
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
      <p class="server-address">{settings.url ? shownAddress(settings.url.trim()) : DEFAULT_SHIM_URL}</p>
      {state?.status === "failed" && <ServerError settings={settings} error={state.error} />}
      {state?.status === "ready" && <OfferLists offers={state.offers} settings={settings} />}
    </li>
  );
}

/** Why a server is not connected. Where a person has to agree, a click may open the window that asks. */
function ServerError({ settings, error }: { readonly settings: ServerSettings; readonly error: ErrorInfo }) {
  const mayAsk = settings.type === "http" && error.kind === "auth";
  return (
    <div class="server-error" role="alert">
      <strong>{mayAsk ? "You are not signed in" : wordsFor(error).title}.</strong> {error.message}
      {mayAsk && (
        <button type="button" class="quiet-button" onClick={() => void connect(settings)}>
          Sign in to {settings.name}
        </button>
      )}
    </div>
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
