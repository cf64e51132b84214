import type { AgUiEvent, AgUiMessage } from "./events.js";

/** The messages that a client has after the events it was told, to take some of them back. */
export class ToldMessages {
  #messages: AgUiMessage[];
  #before: readonly AgUiMessage[];

  constructor(messages: readonly AgUiMessage[]) {
    this.#messages = [...messages];
    this.#before = messages;
  }

  /** From here on is what `takeBack` takes back. */
  mark(): void {
    this.#before = [...this.#messages];
  }

  takeBack(): readonly AgUiMessage[] {
    this.#messages = [...this.#before];
    return this.#before;
  }

  apply(event: AgUiEvent): void {
    switch (event.type) {
      case "TEXT_MESSAGE_START":
        if (event.role === "assistant") this.#messages.push({ id: event.messageId, role: "assistant", content: "" });
        else this.#messages.push({ id: event.messageId, role: "user", content: "" });
        break;
      case "REASONING_MESSAGE_START":
        this.#messages.push({ id: event.messageId, role: "reasoning", content: "" });
        break;
      case "TEXT_MESSAGE_CONTENT":
      case "REASONING_MESSAGE_CONTENT":
        this.#change(
          event.messageId,
          (message) => ({ ...message, content: `${message.content ?? ""}${event.delta}` }) as AgUiMessage,
        );
        break;
      case "TOOL_CALL_START": {
        const { toolCallId: id, toolCallName: name, parentMessageId: parent = id } = event;
        if (!this.#messages.some((message) => message.id === parent))
          this.#messages.push({ id: parent, role: "assistant" });
        const call = { id, type: "function", function: { name, arguments: "" } } as const;
        this.#change(parent, (message) =>
          message.role === "assistant" ? { ...message, toolCalls: [...(message.toolCalls ?? []), call] } : message,
        );
        break;
      }
      case "TOOL_CALL_ARGS":
        this.#messages = this.#messages.map((message) =>
          message.role !== "assistant" || message.toolCalls === undefined
            ? message
            : {
                ...message,
                toolCalls: message.toolCalls.map((call) =>
                  call.id === event.toolCallId
                    ? { ...call, function: { ...call.function, arguments: call.function.arguments + event.delta } }
                    : call,
                ),
              },
        );
        break;
      case "TOOL_CALL_RESULT": {
        const { messageId: id, toolCallId, content } = event;
        this.#messages.push({ id, role: "tool", toolCallId, content });
        break;
      }
      default:
    }
  }

  #change(id: string, change: (message: AgUiMessage) => AgUiMessage): void {
    this.#messages = this.#messages.map((message) => (message.id === id ? change(message) : message));
  }
}
