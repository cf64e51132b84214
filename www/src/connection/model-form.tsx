// Which model answers: provider, name, key, address.
import { Field } from "../ui/field";
import { knownModels, problemsOf, providerOf, type ProviderId, PROVIDERS } from "./providers";
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
      <div class="field">
        <label for="provider">Who answers</label>
        <select
          id="provider"
          value={settings.provider}
          onChange={(event) => chooseProvider(event.currentTarget.value as ProviderId)}
        >
          {PROVIDERS.map(({ id, label }) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </select>
      </div>
      <Field
        id="model"
        label="Model"
        value={settings.model}
        problem={problems["model"]}
        suggestions={knownModels(settings.provider)}
        onInput={(model) => changeModel({ model })}
      />
      {provider.fields.map(({ name, label, hint, isOptional }) => (
        <Field
          key={name}
          id={`provider-${name}`}
          label={label}
          optional={isOptional}
          value={settings.more[name] ?? ""}
          placeholder={hint}
          problem={problems[name]}
          onInput={(value) => changeModel({ more: { ...settings.more, [name]: value } })}
        />
      ))}
      <Field
        id="base-url"
        label="Base URL"
        isAddress
        optional={!provider.needsBaseUrl}
        value={settings.baseUrl}
        placeholder={provider.baseUrlHint}
        problem={problems["baseUrl"]}
        onInput={(baseUrl) => changeModel({ baseUrl })}
      />
      <Field
        id="api-key"
        label={provider.keyLabel}
        type="password"
        optional={!provider.needsKey}
        value={settings.apiKey}
        placeholder={provider.keyHint}
        problem={problems["apiKey"]}
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
