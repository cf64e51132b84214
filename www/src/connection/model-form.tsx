// Which model answers: provider, name, key, address.
import { Field } from "../ui/field";
import { PROVIDERS, problemsOf, providerOf } from "./providers";
import { changeModel, chooseProvider, isScripted, keepForSession, modelSettings } from "./settings";

export function ModelForm() {
  const settings = modelSettings.value;
  const provider = providerOf(settings.provider);
  const problems = problemsOf(settings);

  return (
    // A form, so that password managers and browsers know what belongs together. It is never sent.
    <form
      class="panel-section"
      aria-labelledby="provider-heading"
      autocomplete="off"
      onSubmit={(event) => event.preventDefault()}
    >
      <h3 id="provider-heading">Provider</h3>
      <fieldset class="segments">
        <legend class="visually-hidden">Provider</legend>
        {PROVIDERS.map(({ id, label }) => (
          <label key={id}>
            <input
              type="radio"
              name="provider"
              value={id}
              checked={id === settings.provider}
              onChange={() => chooseProvider(id)}
            />
            <span>{label}</span>
          </label>
        ))}
      </fieldset>
      <Field
        id="model"
        label="Model"
        value={settings.model}
        problem={problems.model}
        suggestions={provider.models}
        onInput={(model) => changeModel({ model })}
      />
      <Field
        id="base-url"
        label="Base URL"
        isAddress
        optional={!provider.needsBaseUrl}
        value={settings.baseUrl}
        placeholder={provider.baseUrlHint}
        problem={problems.baseUrl}
        onInput={(baseUrl) => changeModel({ baseUrl })}
      />
      <Field
        id="api-key"
        label="API key"
        type="password"
        optional={!provider.needsKey}
        value={settings.apiKey}
        placeholder={provider.keyHint}
        problem={problems.apiKey}
        onInput={(apiKey) => changeModel({ apiKey })}
      />
      <p class="help">
        {isScripted.value
          ? "This is the demo's scripted model: no key, no intelligence. Choose a provider above to use a real one."
          : provider.note}
      </p>
      <label class="check">
        <input
          type="checkbox"
          checked={keepForSession.value}
          onChange={(event) => (keepForSession.value = event.currentTarget.checked)}
        />
        <span>
          Keep for this browser session
          <small>Otherwise keys and tokens are gone when the page reloads.</small>
        </span>
      </label>
    </form>
  );
}
