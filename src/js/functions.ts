import type { Models } from "./config.js";
import type { CoreFunctions } from "./core.js";
import { invalidInput } from "./error.js";
import { answerOf } from "./function-model.js";
import { HookAnswers, type Question } from "./hooks.js";
import { toJson } from "./json.js";
import type { AgentOptions } from "./options.js";
import type { RunOutput } from "./output.js";
import { ownTurn } from "./own-turn.js";
import { validate } from "./schema.js";
import { withSkills } from "./skill.js";
import { outputOf, type ToolSet } from "./tool.js";

/** @internal What the module calls of an agent. */
export function functionsOf(given: AgentOptions, models: Models, output: RunOutput | undefined): CoreFunctions {
  const options = withSkills(given);
  const { tools = {} } = options;
  const toolOf = (name: string): ToolSet[string] => {
    const tool = tools[name];
    if (tool === undefined) throw invalidInput(`there is no tool "${name}"`);
    return tool;
  };
  const hooks = new HookAnswers({
    hooks: options,
    needsApproval(toolName, input) {
      const needsApproval = tools[toolName]?.needsApproval;
      return typeof needsApproval === "function" ? needsApproval(input) : false;
    },
    modelConfig: (chosen) => models.config(chosen),
  });
  return {
    fetch: models.fetch,

    async credentials(number) {
      const model = models.at(number);
      const credentials = typeof model === "object" ? model.settings().credentials : undefined;
      if (typeof credentials === "function") await ownTurn();
      const given = typeof credentials === "function" ? await credentials() : credentials;
      return toJson(typeof given === "string" ? { key: given } : given, "the credentials of the model");
    },

    execute(name, callId, input, progress) {
      let controller: AbortController | undefined;
      let isCancelled = false;
      const context = {
        callId,
        // Made when it is asked for: most tools never look.
        get signal() {
          controller ??= new AbortController();
          if (isCancelled) controller.abort(cancelled());
          return controller.signal;
        },
        progress(data: unknown) {
          if (!isCancelled) progress(toJson(data, `the progress of ${name}`));
        },
      };
      const run = async (): Promise<string> => {
        await ownTurn();
        const tool = toolOf(name);
        const parsed: unknown = JSON.parse(input);
        // The validator's output is for `execute` alone and is not kept, so it is made here.
        const given = tool.schema.standard === undefined ? parsed : await validate(tool.schema.standard, parsed);
        return toJson(outputOf(await tool.execute?.(given, context)), `what the tool "${name}" returned`);
      };
      return {
        result: run(),
        cancel() {
          isCancelled = true;
          controller?.abort(cancelled());
        },
      };
    },

    async validate(name, input) {
      const { standard } = toolOf(name).schema;
      await ownTurn();
      // Only whether it is valid matters here: `execute` is given the validator's output.
      if (standard !== undefined) await validate(standard, JSON.parse(input));
      return undefined;
    },

    async ask(text, callModel) {
      const question = JSON.parse(text) as Question | OutputQuestion;
      await ownTurn();
      if (question.type === "validate-output") {
        // Only whether it is valid matters here: the result has the validator's form of it.
        await output?.validate(output.unwrap(question.output));
        return "{}";
      }
      return toJson(await hooks.answer(question, callModel), "the answer of a hook");
    },

    model(number, request) {
      const model = models.at(number);
      if (typeof model !== "function") throw invalidInput("the model is not a function");
      return answerOf(model, request);
    },
  };
}

type OutputQuestion = { readonly type: "validate-output"; readonly output: unknown };

function cancelled(): DOMException {
  return new DOMException("The tool call was cancelled", "AbortError");
}
