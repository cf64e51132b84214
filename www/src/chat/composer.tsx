// The field to write in: sends a prompt, steers the run that is working, or says what comes after it.
import { useEffect, useRef } from "preact/hooks";
import { QueueIcon, SendIcon, StopIcon } from "../ui/icons";
import { isScripted } from "../connection/settings";
import { abort, isRunning, send, transcript } from "./conversation";
import { draft } from "./draft";
import { focusPrompt, PROMPT_ID } from "./prompt-field";

export function Composer() {
  const field = useRef<HTMLTextAreaElement>(null);
  const { tokens } = transcript.value;
  const isReady = draft.value.trim() !== "";

  // One can begin to write at once.
  useEffect(focusPrompt, []);

  const submit = (whileRunning: "steer" | "follow-up" = "steer") => {
    if (!isReady) return;
    send(draft.value.trim(), whileRunning);
    draft.value = "";
    field.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Enter that ends the composition of a character is not for us.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit(event.ctrlKey || event.metaKey ? "follow-up" : "steer");
    } else if (event.key === "Escape" && isRunning.value) {
      abort();
    }
  };

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <div class="composer-box">
        <label class="visually-hidden" for={PROMPT_ID}>
          {isRunning.value ? "Steer the agent" : "Message"}
        </label>
        <textarea
          id={PROMPT_ID}
          ref={field}
          rows={1}
          dir="auto"
          enterkeyhint="send"
          placeholder={isRunning.value ? "Steer the agent while it works" : "Ask something"}
          value={draft.value}
          onInput={(event) => (draft.value = event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        {isRunning.value && (
          <button type="button" class="round-button stop" onClick={abort} aria-label="Stop" title="Stop (Escape)">
            <StopIcon />
          </button>
        )}
        {isRunning.value && isReady && (
          <button
            type="button"
            class="round-button queue"
            onClick={() => submit("follow-up")}
            aria-label="Send when the agent is done"
            title="Send when the agent is done (Ctrl+Enter)"
          >
            <QueueIcon />
          </button>
        )}
        {(!isRunning.value || isReady) && (
          <button
            type="submit"
            class="round-button"
            disabled={!isReady}
            aria-label={isRunning.value ? "Steer" : "Send"}
            title={isRunning.value ? "Steer (Enter)" : "Send (Enter)"}
          >
            <SendIcon />
          </button>
        )}
      </div>
      <p class="composer-foot">
        <span>
          {isScripted.value
            ? "Scripted model: it quotes tools, it does not think."
            : "Models make mistakes. Check what matters."}
        </span>
        {tokens.input > 0 && (
          <span title="Tokens of this conversation: read by the model, written by it">
            {tokens.input.toLocaleString("en")} in · {tokens.output.toLocaleString("en")} out
          </span>
        )}
      </p>
    </form>
  );
}
