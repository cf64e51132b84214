// Something that is asked of a server by hand: its fields, a button that can stop it again, and what came of it.
import { useSignal } from "@preact/signals";
import type { ErrorInfo } from "crablet";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { infoOf } from "../ui/error-words";

type Outcome<Value> = { readonly value: Value } | { readonly error: ErrorInfo } | "running" | undefined;

export interface TrialProps<Value> {
  /** What the button says. */
  readonly verb: string;
  readonly ask: (signal: AbortSignal) => Promise<Value>;
  readonly show: (value: Value) => ComponentChildren;
  readonly children?: ComponentChildren;
}

export function Trial<Value>({ verb, ask, show, children }: TrialProps<Value>) {
  const outcome = useSignal<Outcome<Value>>(undefined);
  const controller = useRef<AbortController>(undefined);

  const run = async (event: SubmitEvent) => {
    event.preventDefault();
    // Enter in a field sends the form although its button says stop.
    if (outcome.value === "running") return;
    outcome.value = "running";
    controller.current = new AbortController();
    const { signal } = controller.current;
    try {
      outcome.value = { value: await ask(signal) };
    } catch (error) {
      outcome.value = signal.aborted ? undefined : { error: infoOf(error) };
    }
  };

  return (
    <form class="trial" onSubmit={(event) => void run(event)}>
      {children}
      {outcome.value === "running" ? (
        <button type="button" class="quiet-button" onClick={() => controller.current?.abort()}>
          <i class="spinner" /> Stop
        </button>
      ) : (
        <button type="submit" class="quiet-button">
          {verb}
        </button>
      )}
      <OutcomeView outcome={outcome.value} show={show} />
    </form>
  );
}

function OutcomeView<Value>({ outcome, show }: { readonly outcome: Outcome<Value> } & Pick<TrialProps<Value>, "show">) {
  if (outcome === undefined || outcome === "running") return null;
  if ("value" in outcome) return <>{show(outcome.value)}</>;
  return (
    <p class="problem" role="alert">
      {outcome.error.message}
    </p>
  );
}
