// The form that adds servers: one by its address, or those of crablet-shim by a pairing code or by a token.
import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { infoOf } from "../ui/error-words";
import { Field } from "../ui/field";
import { pair, withPaired } from "./pairing";
import { DEFAULT_SHIM_URL, problemOf, type ServerSettings } from "./server-settings";
import { addServer, connect } from "./servers";
import { serverSettings } from "./settings";

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
    <Fields problem={problem.value} onSubmit={submit} onClose={onClose}>
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
    <Fields problem={problem.value} onSubmit={submit} onClose={onClose}>
      <TextField id="server-name" label="Server name, as the shim knows it" value={name} />
      <ShimAddress value={url} />
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
  const code = useSignal("");
  const url = useSignal("");
  const problem = useSignal<string | undefined>(undefined);
  const isPairing = useSignal(false);
  const controller = useRef(new AbortController());
  // A form that is left wants no token any more.
  useEffect(() => () => controller.current.abort(), []);

  const submit = async () => {
    if (isPairing.value) return;
    isPairing.value = true;
    problem.value = undefined;
    try {
      const paired = withPaired(serverSettings.value, await pair(code.value, url.value, controller.current.signal));
      serverSettings.value = paired.servers;
      for (const settings of paired.opened) void connect(settings);
      problem.value = problemAfter(paired.opened.length, paired.taken);
      if (!problem.value) onClose();
    } catch (error) {
      problem.value = infoOf(error).message;
    } finally {
      isPairing.value = false;
    }
  };

  return (
    <Fields problem={problem.value} isBusy={isPairing.value} onSubmit={() => void submit()} onClose={onClose}>
      <TextField id="pairing-code" label="Pairing code" value={code} />
      <ShimAddress value={url} />
      <p class="help">
        In a terminal: <code>crablet-shim pair --server NAME</code> shows a code, which works once and for five minutes.
      </p>
    </Fields>
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

function ShimAddress({ value }: { readonly value: Signal<string> }) {
  return (
    <TextField id="server-url" label="Shim address" isAddress optional placeholder={DEFAULT_SHIM_URL} value={value} />
  );
}

interface TextFieldProps {
  readonly id: string;
  readonly label: string;
  readonly value: Signal<string>;
  readonly isAddress?: boolean;
  readonly optional?: boolean;
  readonly placeholder?: string;
}

function TextField({ value, ...rest }: TextFieldProps) {
  return <Field {...rest} value={value.value} onInput={(text) => (value.value = text)} />;
}

interface FieldsProps {
  readonly problem: string | undefined;
  readonly isBusy?: boolean;
  readonly onSubmit: () => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** The fields of a way, what is wrong with them, and the buttons. */
function Fields({ problem, isBusy = false, onSubmit, onClose, children }: FieldsProps) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <form class="server-fields" onSubmit={submit} aria-label="Add a tool server" aria-busy={isBusy}>
      {children}
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <div class="form-buttons">
        <button type="submit" class="button" disabled={isBusy}>
          {isBusy && <i class="spinner" />} Connect
        </button>
        <button type="button" class="quiet-button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}
