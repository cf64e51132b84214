import { type FormEvent, useEffect, useRef, useState } from "react";
import type { Message } from "crablet";
import { useSession } from "crablet/react";
import type { ChatSession } from "./agent.js";

const STATUS: Readonly<Record<string, string>> = {
  running: "Working…",
  "awaiting-approval": "Waiting for your decision.",
  interrupted: "Stopped in the middle.",
};

export function Chat({ session }: { readonly session: ChatSession }) {
  const { messages, streaming, status, pending, error, send, approve, resume, stop } = useSession(session);
  const [text, setText] = useState("");
  const end = useRef<HTMLDivElement>(null);
  const isOpen = status === "running" || status === "awaiting-approval";

  // biome-ignore lint/correctness/useExhaustiveDependencies: what is shown is what moves the end.
  useEffect(() => {
    // Newer browsers return a promise here, which React would take for what ends the effect.
    end.current?.scrollIntoView({ block: "end" });
  }, [messages, streaming]);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() === "") return;
    send(text);
    setText("");
  }

  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached by keyboard. */}
      <main aria-live="polite" aria-label="Conversation" tabIndex={0}>
        {messages.map((message, index) => (
          <Shown key={message.id ?? index} message={message} />
        ))}
        {streaming && <Shown message={streaming} />}
        <div ref={end} />
      </main>
      <footer>
        {pending.map(({ callId, toolName, input }) => (
          <section key={callId} className="question" role="alert" aria-label="Decision">
            <p>
              May the agent use <code>{toolName}</code> with <code>{JSON.stringify(input)}</code>?
            </p>
            <button type="button" onClick={() => approve(callId)}>
              Allow
            </button>
            <button type="button" className="quiet" onClick={() => approve(callId, false)}>
              Deny
            </button>
          </section>
        ))}
        {error && <p role="alert">{error.message}</p>}
        <p role="status">{STATUS[status]}</p>
        <form className="composer" onSubmit={submit}>
          <input
            aria-label="Message"
            placeholder="Make the page dark"
            autoComplete="off"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          {status === "interrupted" ? (
            <button type="button" onClick={resume}>
              Go on
            </button>
          ) : isOpen ? (
            <button type="button" onClick={() => stop()}>
              Stop
            </button>
          ) : (
            <button type="submit">Send</button>
          )}
        </form>
      </footer>
    </>
  );
}

function Shown({ message }: { readonly message: Message }) {
  return message.content.map((part, index) => {
    const key = `${index}`;
    switch (part.type) {
      case "text":
        return (
          <p key={key} className={message.role}>
            {part.text}
          </p>
        );
      case "tool-call":
        return (
          <p key={key} className="call">
            <code>{part.toolName}</code> {JSON.stringify(part.input)}
          </p>
        );
      case "tool-result":
        return (
          <p key={key} className="call">
            {part.isError ? "failed" : "done"}
          </p>
        );
      default:
        return null;
    }
  });
}
