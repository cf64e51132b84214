// What servers ask of the user: each question waits until the user has decided, or until nobody wants the answer any more.
import { signal } from "@preact/signals";
import type { McpElicitation, McpElicitationResult, McpFormRequest, McpQuestionContext, McpUrlRequest } from "crablet";

export type Question = { readonly server: string; readonly decide: (result: McpElicitationResult) => void } & (
  | { readonly kind: "form"; readonly request: McpFormRequest }
  | { readonly kind: "url"; readonly request: McpUrlRequest }
);

/** The open questions, oldest first. */
export const questions = signal<readonly Question[]>([]);

/** The handlers that every server of the page is given. */
export const elicitation: McpElicitation = {
  form: (request, context) => asked(context, (decide) => ({ kind: "form", request, server: context.server, decide })),
  url: (request, context) => asked(context, (decide) => ({ kind: "url", request, server: context.server, decide })),
};

function asked(
  { signal: aborted }: McpQuestionContext,
  questionOf: (decide: (result: McpElicitationResult) => void) => Question,
): Promise<McpElicitationResult> {
  return new Promise((resolve) => {
    const decide = (result: McpElicitationResult) => {
      questions.value = questions.value.filter((open) => open !== question);
      resolve(result);
    };
    const question = questionOf(decide);
    questions.value = [...questions.value, question];
    aborted.addEventListener("abort", () => decide({ action: "cancel" }), { once: true });
  });
}
