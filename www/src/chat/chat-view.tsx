// The conversation and the field to write in.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { memo } from "preact/compat";
import { demo } from "../connection/demo";
import { Markdown } from "../markdown/markdown";
import { ChevronIcon, Logo } from "../ui/icons";
import { Composer } from "./composer";
import { isEmpty, isInterrupted, isRunning, resume, send, transcript } from "./conversation";
import { ErrorCard, Notice } from "./error-card";
import { focusPrompt } from "./prompt-field";
import { ToolCard } from "./tool-card";
import { answerOf, type Item, type TextItem, type UserItem } from "./transcript";

/** How far from the end, in CSS pixels, still counts as reading the end. */
const END_DISTANCE = 80;

/** How long what is announced stays in the page, in milliseconds. */
const ANNOUNCEMENT_TIME = 5_000;

export function ChatView() {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const { items } = transcript.value;

  // Follows the end while the reader is there; a reader who scrolled back is left in peace.
  const followEnd = () => {
    const element = scroller.current;
    if (element && isAtEnd.current) element.scrollTop = element.scrollHeight;
  };
  useLayoutEffect(followEnd);
  useEffect(() => {
    const observer = new ResizeObserver(followEnd);
    if (scroller.current) observer.observe(scroller.current);
    return () => observer.disconnect();
  }, []);

  const onScroll = () => {
    const element = scroller.current;
    if (element) isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < END_DISTANCE;
  };

  return (
    <>
      {!isEmpty.value && (
        <h2 class="visually-hidden" id="conversation-heading">
          Conversation
        </h2>
      )}
      <div class="scroller" ref={scroller} onScroll={onScroll} tabIndex={-1}>
        {isEmpty.value ? (
          <Welcome />
        ) : (
          <ol class="conversation" aria-labelledby="conversation-heading">
            {items.map((item) => (
              <Entry key={item.id} item={item} />
            ))}
            {isRunning.value && isWaiting(items.at(-1)) && (
              <li class="entry" key="waiting">
                <p class="waiting" role="status">
                  <span class="visually-hidden">Waiting for the model</span>
                  <i />
                  <i />
                  <i />
                </p>
              </li>
            )}
          </ol>
        )}
        {isInterrupted.value && (
          <p class="interrupted">
            This conversation stopped in the middle of a run.
            <button
              type="button"
              class="quiet-button"
              onClick={() => {
                resume();
                focusPrompt();
              }}
            >
              Go on
            </button>
          </p>
        )}
      </div>
      <Announcement />
      <Composer />
    </>
  );
}

/** What a screen reader says by itself: that the agent works, and the answer once it is whole. */
function Announcement() {
  const said = useSignal("");
  useEffect(() => {
    if (isRunning.value) {
      said.value = "The agent is working.";
      return;
    }
    said.value = isEmpty.value ? "" : `The agent is done. ${answerOf(transcript.value.items)}`;
    // It stands in the conversation: who reads on, or searches the page, finds it once.
    const timer = setTimeout(() => (said.value = ""), ANNOUNCEMENT_TIME);
    return () => clearTimeout(timer);
  }, [isRunning.value]);
  return (
    <p class="visually-hidden" role="status">
      {said}
    </p>
  );
}

/** Whether nothing on screen moves by itself, so that a sign of life is due. */
function isWaiting(last: Item | undefined): boolean {
  if (last?.kind === "tool") return last.endedAt !== undefined;
  if (last?.kind === "text" || last?.kind === "reasoning") return !last.open || last.text === "";
  return last?.kind !== "error";
}

const Entry = memo(({ item }: { readonly item: Item }) => (
  <li class="entry" data-kind={item.kind}>
    {render(item)}
  </li>
));

function render(item: Item) {
  switch (item.kind) {
    case "user":
      return <UserMessage item={item} />;
    case "text":
      return item.text === "" ? null : <Markdown text={item.text} />;
    case "reasoning":
      return item.text === "" ? null : <Reasoning item={item} />;
    case "tool":
      return <ToolCard tool={item} />;
    case "notice":
      return <Notice item={item} />;
    case "error":
      return <ErrorCard error={item.error} />;
  }
}

/** What is said below a message that was given while the agent worked. */
const DELIVERY_WORDS = {
  steer: {
    pending: "waits for the agent to finish its step",
    delivered: "said while the agent worked",
    dropped: "not taken in: the run ended first",
  },
  "follow-up": {
    pending: "waits for the agent to be done",
    delivered: "given while the agent worked",
    dropped: "not taken in",
  },
};

function UserMessage({ item }: { readonly item: UserItem }) {
  return (
    <div class="user-message">
      <p>{item.text}</p>
      {item.via !== "prompt" && <small>{DELIVERY_WORDS[item.via][item.delivery]}</small>}
    </div>
  );
}

function Reasoning({ item }: { readonly item: TextItem }) {
  return (
    <details class="reasoning">
      <summary>
        <ChevronIcon />
        <span class={item.open ? "shimmer" : undefined}>{item.open ? "Thinking" : "Thought"}</span>
        <span class="reasoning-preview">{item.text}</span>
      </summary>
      <p>{item.text}</p>
    </details>
  );
}

const PROMPTS = ["What can you do?", "Explain in three sentences what an agent loop is."];

function Welcome() {
  return (
    <div class="welcome">
      <Logo />
      <h2>An agent, in this page</h2>
      <p>
        The loop, the model's wire protocol and the MCP client run here, in one WebAssembly module. Nothing lies between
        your browser, your model and your tools.
      </p>
      {demo.value?.scripted && (
        <p class="scripted-note">
          <span class="badge">scripted</span> The model of this demo is a script that needs no key: it matches your
          words to tools and quotes what they return. The tools are real.
        </p>
      )}
      <ul class="prompts" aria-label="Prompts to try">
        {(demo.value?.prompts ?? PROMPTS).map((prompt) => (
          <li key={prompt}>
            <button
              type="button"
              onClick={() => {
                send(prompt);
                focusPrompt();
              }}
            >
              {prompt}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
