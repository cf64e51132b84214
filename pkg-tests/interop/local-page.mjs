// The browser's own model, or what is said where it has none, which is so in a headless Chromium.
import { Agent } from "crablet";
import { promptApiModel } from "crablet/local-models";
import { scriptedModel } from "crablet/test";

window.local = async () => {
  const has = "LanguageModel" in globalThis;
  const availability = has ? await globalThis.LanguageModel.availability() : "none";
  const failure = await new Agent({ model: promptApiModel() }).run("hi").catch((error) => error);
  const agent = new Agent({
    model: promptApiModel(),
    fallbackModels: [scriptedModel(["from elsewhere"])],
    retry: false,
  });
  const { text } = await agent.run("hi");
  // Nobody waited for what does not come by waiting.
  const waits = [];
  const waiting = new Agent({
    model: promptApiModel(),
    onEvent: ({ type }) => type === "step-retry" && waits.push(type),
  });
  await waiting.run("hi").catch(() => {});
  return { waits: waits.length, availability, kind: failure.kind, message: failure.message, text };
};
