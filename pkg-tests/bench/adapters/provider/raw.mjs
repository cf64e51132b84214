// What a person writes by hand: fetch, a parser of events, JSON.parse, a text that grows.
import { createParser } from "eventsource-parser";

export function create({ api, baseUrl, apiKey }) {
  const [url, headers, body] = api === "openai" ? openai(baseUrl, apiKey) : anthropic(baseUrl, apiKey);
  const deltaOf = api === "openai" ? openaiDelta : anthropicDelta;
  return async () => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ ...body, stream: true, messages: [{ role: "user", content: "hi" }] }),
    });
    let text = "";
    const decoder = new TextDecoder();
    const parser = createParser({
      onEvent: ({ data }) => {
        if (data !== "[DONE]") text += deltaOf(JSON.parse(data));
      },
    });
    const reader = response.body.getReader();
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      parser.feed(decoder.decode(read.value, { stream: true }));
    }
    return text.length;
  };
}

function openai(baseUrl, apiKey) {
  const headers = { authorization: `Bearer ${apiKey}` };
  return [`${baseUrl}/v1/chat/completions`, headers, { model: "bench", stream_options: { include_usage: true } }];
}

function anthropic(baseUrl, apiKey) {
  const headers = { "x-api-key": apiKey, "anthropic-version": "2023-06-01" };
  return [`${baseUrl}/v1/messages`, headers, { model: "bench", max_tokens: 1000 }];
}

const openaiDelta = (chunk) => chunk.choices[0]?.delta?.content ?? "";
const anthropicDelta = (event) => (event.type === "content_block_delta" ? event.delta.text : "");
