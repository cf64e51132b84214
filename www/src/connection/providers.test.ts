import { catalog } from "crablet/models";
import { expect, test } from "vitest";
import { defaultsOf, knownModels, modelOf, problemsOf, PROVIDERS } from "./providers";

test.each(PROVIDERS)(
  "$label says what it needs, field by field, and is a model when it has that",
  ({ id, ...needs }) => {
    const empty = { ...defaultsOf(id), model: "" };
    const required = needs.fields.filter(({ isOptional }) => !isOptional).map(({ name }) => name);
    expect(Object.keys(problemsOf(empty))).toEqual(
      expect.arrayContaining(["model", ...required, ...(needs.needsKey ? ["apiKey"] : [])]),
    );
    const more = Object.fromEntries(needs.fields.map(({ name }) => [name, "somewhere"]));
    const whole = { ...empty, model: "a-model", apiKey: "a-key", more, baseUrl: "https://example.com/v1" };
    expect(problemsOf(whole)).toEqual({});
    expect(modelOf(whole)).toMatchObject({ id: "a-model" });
  },
);

test("a deployment of Azure is at a resource or at a base URL", () => {
  const settings = { ...defaultsOf("azure"), model: "deployment", apiKey: "a-key" };
  expect(Object.keys(problemsOf(settings))).toEqual(["resource"]);
  expect(problemsOf({ ...settings, more: { resource: "name" } })).toEqual({});
  expect(problemsOf({ ...settings, baseUrl: "https://example.com/openai/v1" })).toEqual({});
});

test("the model that a provider begins with is in the catalogue, which knows what it costs", () => {
  const begun = PROVIDERS.map(({ id }) => defaultsOf(id)).filter(({ model }) => model !== "");
  expect(begun.length).toBeGreaterThan(0);
  for (const settings of begun) {
    expect(knownModels(settings.provider)).toContain(settings.model);
    const model = modelOf({ ...settings, apiKey: "a-key", more: { project: "a-project" } });
    expect(catalog.find(model)?.prices?.output).toBeGreaterThan(0);
  }
});
