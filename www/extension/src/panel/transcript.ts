// Shows messages. Only what has changed is made anew.
import type { AssistantMessage, Message, ToolCallPart, ToolResultPart } from "crablet";
import { byId, make } from "./elements.js";

/** How near to its end, in pixels, a transcript is followed. */
const FOLLOW_DISTANCE = 80;

export class Transcript {
  readonly #log = byId("transcript");
  readonly #shown: HTMLElement[] = [];
  readonly #calls = new Map<string, HTMLElement>();
  #streaming: HTMLElement | undefined;

  constructor() {
    // What scrolls can be reached by keyboard.
    this.#log.tabIndex = 0;
  }

  show(from: number, messages: readonly Message[], streaming: AssistantMessage | undefined): void {
    const isAtEnd = this.#log.scrollHeight - this.#log.scrollTop - this.#log.clientHeight < FOLLOW_DISTANCE;
    for (const gone of this.#shown.splice(from)) gone.remove();
    this.#streaming?.remove();
    for (const message of messages) this.#add(message);
    this.#streaming = streaming && this.#answer(streaming);
    if (this.#streaming !== undefined) this.#log.append(this.#streaming);
    if (isAtEnd) this.#log.scrollTop = this.#log.scrollHeight;
  }

  #add(message: Message): void {
    const element = this.#elementOf(message);
    this.#shown.push(element);
    this.#log.append(element);
  }

  #elementOf(message: Message): HTMLElement {
    switch (message.role) {
      case "user":
        return make("article", "user", heading("You"), ...message.content.map((part) => paragraph(textOf(part))));
      case "assistant":
        return this.#answer(message);
      case "tool":
        for (const result of message.content) this.#addResult(result);
        return make("div", "");
    }
  }

  #answer({ content }: AssistantMessage): HTMLElement {
    const element = make("article", "assistant", heading("Agent"));
    for (const part of content) {
      if (part.type === "text") element.append(paragraph(part.text));
      else if (part.type === "tool-call") element.append(this.#call(part));
    }
    return element;
  }

  #call(call: ToolCallPart): HTMLElement {
    const element = make(
      "details",
      "call",
      make("summary", "", make("code", "", call.toolName)),
      make("pre", "", call.inputText ?? JSON.stringify(call.input, undefined, 2) ?? ""),
    );
    this.#calls.set(call.callId, element);
    return element;
  }

  #addResult({ callId, content, isError }: ToolResultPart): void {
    const call = this.#calls.get(callId);
    if (call === undefined || call.dataset.outcome !== undefined) return;
    call.dataset.outcome = isError ? "failed" : "done";
    call.querySelector("summary")?.append(make("span", "outcome", isError ? "failed" : "done"));
    call.append(make("pre", "", content.map(textOf).join("\n")));
  }
}

function heading(name: string): HTMLElement {
  return make("h2", "unseen", name);
}

function paragraph(text: string): HTMLElement {
  return make("p", "", text);
}

function textOf(part: { readonly type: string; readonly text?: string; readonly name?: string }): string {
  return part.text ?? `[${part.type} ${part.name ?? ""}]`;
}
