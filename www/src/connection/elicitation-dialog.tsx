// A server asks the user: a form to fill in or a page to open, which the user may decline.
import { useEffect, useRef } from "preact/hooks";
import { type Question, questions } from "./elicitation";
import { fieldsOf, type FormField, valuesOf } from "./form-fields";

export function ElicitationDialog() {
  const [question] = questions.value;
  // A question of its own dialog, so that nothing of the last one stays in the fields.
  return question ? <QuestionDialog key={question.server + question.request.message} question={question} /> : null;
}

function QuestionDialog({ question }: { readonly question: Question }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="elicitation"
      aria-labelledby="elicitation-title"
      onCancel={(event) => {
        event.preventDefault();
        question.decide({ action: "cancel" });
      }}
    >
      <h2 id="elicitation-title">
        The server <code>{question.server}</code> asks you
      </h2>
      <p class="elicitation-message">{question.request.message}</p>
      {question.kind === "form" ? <Form question={question} /> : <Page question={question} />}
    </dialog>
  );
}

function Form({ question }: { readonly question: Extract<Question, { kind: "form" }> }) {
  const fields = fieldsOf(question.request.requestedSchema);
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    question.decide({ action: "accept", content: valuesOf(fields, data) });
  };
  return (
    <form onSubmit={send}>
      {fields.map((field) => (
        <Field key={field.name} field={field} />
      ))}
      <p class="help">What you send goes to this server. Do not enter passwords or keys.</p>
      <div class="elicitation-buttons">
        <button type="submit" class="button">
          Send
        </button>
        <Decline question={question} />
      </div>
    </form>
  );
}

function Page({ question }: { readonly question: Extract<Question, { kind: "url" }> }) {
  const { url } = question.request;
  return (
    <>
      <p>
        It wants to open a page of <strong>{URL.parse(url)?.host}</strong>:
      </p>
      <p class="elicitation-address">{url}</p>
      <div class="elicitation-buttons">
        <a
          class="button"
          href={url}
          target="_blank"
          rel="noopener noreferrer"
          onClick={() => question.decide({ action: "accept" })}
        >
          Open the page
        </a>
        <Decline question={question} />
      </div>
    </>
  );
}

function Decline({ question }: { readonly question: Question }) {
  return (
    <button type="button" class="quiet-button" onClick={() => question.decide({ action: "decline" })}>
      Decline
    </button>
  );
}

function Field({ field }: { readonly field: FormField }) {
  const { name, label, description, isRequired } = field;
  const id = `elicitation-${name}`;
  return (
    <div class="field" data-kind={field.kind}>
      <label for={id}>
        {label}
        {!isRequired && field.kind !== "checkbox" && <small>optional</small>}
      </label>
      <Control id={id} field={field} />
      {description && (
        <p class="help" id={`${id}-help`}>
          {description}
        </p>
      )}
    </div>
  );
}

function Control({ id, field }: { readonly id: string; readonly field: FormField }) {
  const { name, kind, options, initial, limits, isRequired } = field;
  const help = field.description ? `${id}-help` : undefined;
  if (kind === "select" || kind === "multiple") {
    return (
      <select id={id} name={name} multiple={kind === "multiple"} required={isRequired} aria-describedby={help}>
        {kind === "select" && !isRequired && <option value="">—</option>}
        {options.map(({ value, label }) => (
          <option key={value} value={value} selected={initial.includes(value)}>
            {label}
          </option>
        ))}
      </select>
    );
  }
  if (kind === "checkbox") {
    return <input id={id} name={name} type="checkbox" defaultChecked={initial[0] === "true"} aria-describedby={help} />;
  }
  return (
    <input
      id={id}
      name={name}
      // The types of Preact want one kind of field a time.
      type={kind as "text"}
      defaultValue={initial[0] ?? ""}
      required={isRequired}
      autocomplete="off"
      aria-describedby={help}
      {...limits}
    />
  );
}
