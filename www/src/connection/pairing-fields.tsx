// The fields in which the code of a shim is typed, and the wait for its token.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { infoOf } from "../ui/error-words";
import { Fields, ShimAddress, TextField } from "./server-fields";

export interface PairingFieldsProps {
  readonly label: string;
  /** Begins the ids of the fields. */
  readonly idPrefix: string;
  /** Pairs; gives in words what was left undone, if something was. */
  readonly pair: (code: string, url: string, signal: AbortSignal) => Promise<string | undefined>;
  readonly onClose: () => void;
  /** How the code is come by. */
  readonly children: ComponentChildren;
}

export function PairingFields({ label, idPrefix, pair, onClose, children }: PairingFieldsProps) {
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
      problem.value = await pair(code.value, url.value, controller.current.signal);
      if (!problem.value) onClose();
    } catch (error) {
      problem.value = infoOf(error).message;
    } finally {
      isPairing.value = false;
    }
  };

  return (
    <Fields
      label={label}
      problem={problem.value}
      isBusy={isPairing.value}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <TextField id={`${idPrefix}-code`} label="Pairing code" value={code} />
      <ShimAddress id={`${idPrefix}-url`} value={url} />
      <p class="help">{children}</p>
    </Fields>
  );
}
