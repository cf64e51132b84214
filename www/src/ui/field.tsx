// A labelled text field with its problem below it.
export interface FieldProps {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly type?: "text" | "password";
  /** Whether the value is an address. The browser's own kind of URL field would complain in its own words. */
  readonly isAddress?: boolean;
  readonly optional?: boolean;
  readonly placeholder?: string;
  readonly problem?: string | undefined;
  readonly suggestions?: readonly string[];
  readonly onFocus?: () => void;
}

export function Field({
  id,
  label,
  value,
  onInput,
  type = "text",
  isAddress = false,
  optional = false,
  placeholder,
  problem,
  suggestions = [],
  onFocus,
}: FieldProps) {
  const hasList = suggestions.length > 0;
  const kind = hasList
    ? { list: `${id}-suggestions` }
    : type === "password"
      ? { type: "password" as const }
      : { type: "text" as const };
  return (
    <div class="field" data-problem={problem ? "yes" : undefined}>
      <label for={id}>
        {label}
        {optional && <small>optional</small>}
      </label>
      <input
        id={id}
        {...kind}
        inputMode={isAddress ? "url" : undefined}
        value={value}
        placeholder={placeholder}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-invalid={problem ? true : undefined}
        aria-describedby={problem ? `${id}-problem` : undefined}
        onInput={(event) => onInput(event.currentTarget.value)}
        onFocus={onFocus}
      />
      {hasList && (
        <datalist id={`${id}-suggestions`}>
          {suggestions.map((suggestion) => (
            <option key={suggestion} value={suggestion} />
          ))}
        </datalist>
      )}
      {problem && (
        <p class="problem" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </div>
  );
}
