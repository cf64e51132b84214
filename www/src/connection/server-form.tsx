// The form that adds servers: one by its address, or those of crablet-shim by a pairing code or by a token.
import { useSignal } from "@preact/signals";
import { Field } from "../ui/field";
import { pair, withPaired } from "./pairing";
import { PairingFields } from "./pairing-fields";
import { Fields, ShimAddress, TextField } from "./server-fields";
import { problemOf, type ServerSettings } from "./server-settings";
import { addServer, connect } from "./servers";
import { serverSettings } from "./settings";

const LABEL = "Add a tool server";

const WAYS = { http: "Address", pair: "Shim code", shim: "Shim token" } as const;

export function ServerForm({ onClose }: { readonly onClose: () => void }) {
  const way = useSignal<keyof typeof WAYS>("http");
  return (
    <div class="server-form">
      <fieldset class="segments">
        <legend class="visually-hidden">How it is reached</legend>
        {(Object.keys(WAYS) as (keyof typeof WAYS)[]).map((choice) => (
          <label key={choice}>
            <input
              type="radio"
              name="server-way"
              checked={way.value === choice}
              onChange={() => (way.value = choice)}
            />
            <span>{WAYS[choice]}</span>
          </label>
        ))}
      </fieldset>
      {way.value === "http" && <AddressForm onClose={onClose} />}
      {way.value === "pair" && <PairingForm onClose={onClose} />}
      {way.value === "shim" && <TokenForm onClose={onClose} />}
    </div>
  );
}

function AddressForm({ onClose }: { readonly onClose: () => void }) {
  const name = useSignal("");
  const url = useSignal("");
  const problem = useSignal<string | undefined>(undefined);
  const submit = () => {
    problem.value = add({ type: "http", name: name.value.trim(), url: url.value.trim() });
    if (!problem.value) onClose();
  };
  return (
    <Fields label={LABEL} problem={problem.value} onSubmit={submit} onClose={onClose}>
      <TextField id="server-name" label="Name" value={name} />
      <TextField id="server-url" label="Address" isAddress placeholder="https://example.com/mcp" value={url} />
    </Fields>
  );
}

function TokenForm({ onClose }: { readonly onClose: () => void }) {
  const name = useSignal("");
  const url = useSignal("");
  const token = useSignal("");
  const problem = useSignal<string | undefined>(undefined);
  const submit = () => {
    const base = { name: name.value.trim(), url: url.value.trim() };
    problem.value = add({ type: "shim", ...base, token: token.value.trim() });
    if (!problem.value) onClose();
  };
  return (
    <Fields label={LABEL} problem={problem.value} onSubmit={submit} onClose={onClose}>
      <TextField id="server-name" label="Server name, as the shim knows it" value={name} />
      <ShimAddress id="server-url" value={url} />
      <Field
        id="server-token"
        label="Token"
        type="password"
        value={token.value}
        onInput={(value) => (token.value = value)}
      />
      <p class="help">
        In a terminal: <code>crablet-shim grant --origin {location.origin} --server NAME</code> prints the token.
      </p>
    </Fields>
  );
}

function PairingForm({ onClose }: { readonly onClose: () => void }) {
  const pairServers = async (code: string, url: string, signal: AbortSignal) => {
    const paired = withPaired(serverSettings.value, await pair(code, url, signal));
    serverSettings.value = paired.servers;
    for (const settings of paired.opened) void connect(settings);
    return problemAfter(paired.opened.length, paired.taken);
  };
  return (
    <PairingFields label={LABEL} idPrefix="pairing" pair={pairServers} onClose={onClose}>
      In a terminal: <code>crablet-shim pair --server NAME</code> shows a code, which works once and for five minutes.
    </PairingFields>
  );
}

/** What a pairing left undone, in words. */
function problemAfter(opened: number, taken: readonly string[]): string | undefined {
  if (taken.length > 0) {
    return `The code was right, but ${taken.join(", ")} is not added: another server has that name. Remove it, then pair again.`;
  }
  return opened === 0
    ? "The code was right, but it opens no server: name some with crablet-shim pair --server."
    : undefined;
}

/** Adds a server that nothing keeps from being used; otherwise says what does. */
function add(settings: ServerSettings): string | undefined {
  const taken = serverSettings.value.map(({ name }) => name);
  const problem = problemOf(settings, taken);
  if (!problem) addServer(settings);
  return problem;
}
