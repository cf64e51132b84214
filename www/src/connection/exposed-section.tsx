// Offering the page's own tools to agents of this machine: the pairing, and what became of each tool.
import { useSignal } from "@preact/signals";
import type { ExposedState, ExposedToolState } from "crablet/server";
import { exposedState, startExposing, stopExposing } from "./exposed-tools";
import { PairingFields } from "./pairing-fields";

export function ExposedSection() {
  const isPairing = useSignal(false);
  const state = exposedState.value;
  return (
    <section class="panel-section" aria-labelledby="exposed-heading">
      <div class="section-head">
        <h3 id="exposed-heading">Agents of this machine</h3>
        {state ? (
          <button type="button" class="quiet-button" onClick={stopExposing}>
            End it
          </button>
        ) : (
          !isPairing.value && (
            <button type="button" class="quiet-button" onClick={() => (isPairing.value = true)}>
              Let them in
            </button>
          )
        )}
      </div>
      {state && <Offered state={state} />}
      {!state && isPairing.value && (
        <div class="server-form">
          <PairingFields
            label="Let agents of this machine in"
            idPrefix="expose"
            pair={(...given) => startExposing(...given).then(() => undefined)}
            onClose={() => (isPairing.value = false)}
          >
            In a terminal: <code>crablet-shim pair --expose</code> shows a code, and <code>crablet-shim expose</code> is
            the MCP server of the agents.
          </PairingFields>
        </div>
      )}
      {!state && !isPairing.value && (
        <p class="help">
          Claude Code, Cursor and others can read this conversation and ask its agent, if you let them.
        </p>
      )}
    </section>
  );
}

const STATUS_WORDS = {
  connecting: "Connecting to the shim.",
  connected: "The shim offers these tools:",
  waiting: "The shim is not reached. The page tries again.",
  closed: "The shim takes no tools of this page any more.",
};

function Offered({ state: { status, error, tools } }: { readonly state: ExposedState }) {
  return (
    <div class="exposed" data-status={status}>
      <p class="help" role="status">
        {STATUS_WORDS[status]}
      </p>
      {error && (
        <p class="problem" role="alert">
          {error.message}
        </p>
      )}
      <ul class="exposed-tools">
        {tools.map((tool) => (
          <OfferedTool key={tool.name} tool={tool} />
        ))}
      </ul>
    </div>
  );
}

function OfferedTool({ tool: { name, offeredAs, withheld, awaitsConsent } }: { readonly tool: ExposedToolState }) {
  return (
    <li class="help" data-tool={name} data-offered={offeredAs === undefined ? "no" : "yes"}>
      <strong>{name}</strong> {offeredAs === undefined ? `is withheld: ${withheld}.` : `as ${offeredAs}`}
      {awaitsConsent && (
        <>
          {" "}
          <code>crablet-shim consent</code> lets it in.
        </>
      )}
    </li>
  );
}
