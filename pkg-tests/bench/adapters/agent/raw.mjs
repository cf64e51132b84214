// What a person writes by hand: the history as objects, sent whole each turn, as the protocol wants it.
import { createParser } from "eventsource-parser";

const parameters = { type: "object", properties: { i: { type: "number" } }, required: ["i"] };
const tools = [{ type: "function", function: { name: "noop", description: "does nothing", parameters } }];

export function create({ baseUrl }) {
  return async ({ apiKey, tool }) => {
    const messages = [{ role: "user", content: "go" }];
    for (;;) {
      const answer = await ask(baseUrl, apiKey, messages);
      messages.push(answer);
      if (answer.tool_calls === undefined) return answer.content;
      const results = answer.tool_calls.map(async ({ id, function: { arguments: text } }) => {
        return { role: "tool", tool_call_id: id, content: await tool(JSON.parse(text).i) };
      });
      messages.push(...(await Promise.all(results)));
    }
  };
}

async function ask(baseUrl, apiKey, messages) {
  const response = await fetch(`${baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: "bench", stream: true, stream_options: { include_usage: true }, messages, tools }),
  });
  const message = { role: "assistant", content: null };
  const decoder = new TextDecoder();
  const parser = createParser({
    onEvent: ({ data }) => {
      const delta = data === "[DONE]" ? undefined : JSON.parse(data).choices[0]?.delta;
      if (delta?.content) message.content = (message.content ?? "") + delta.content;
      for (const { index, id, function: part } of delta?.tool_calls ?? []) {
        message.tool_calls ??= [];
        message.tool_calls[index] ??= { id, type: "function", function: { name: part.name, arguments: "" } };
        message.tool_calls[index].function.arguments += part.arguments;
      }
    },
  });
  const reader = response.body.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    parser.feed(decoder.decode(read.value, { stream: true }));
  }
  return message;
}
