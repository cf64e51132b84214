// What the forms that connect have in common.
import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Field } from "../ui/field";
import { DEFAULT_SHIM_URL } from "./server-settings";

/** Where the shim listens. */
export function ShimAddress({ id, value }: { readonly id: string; readonly value: Signal<string> }) {
  return <TextField id={id} label="Shim address" isAddress optional placeholder={DEFAULT_SHIM_URL} value={value} />;
}

interface TextFieldProps {
  readonly id: string;
  readonly label: string;
  readonly value: Signal<string>;
  readonly isAddress?: boolean;
  readonly optional?: boolean;
  readonly placeholder?: string;
}

/** A text field that writes to a signal. */
export function TextField({ value, ...rest }: TextFieldProps) {
  return <Field {...rest} value={value.value} onInput={(text) => (value.value = text)} />;
}

interface FieldsProps {
  readonly label: string;
  readonly problem: string | undefined;
  readonly isBusy?: boolean;
  readonly onSubmit: () => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** The fields of a form, what is wrong with them, and the buttons. */
export function Fields({ label, problem, isBusy = false, onSubmit, onClose, children }: FieldsProps) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <form class="server-fields" onSubmit={submit} aria-label={label} aria-busy={isBusy}>
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
