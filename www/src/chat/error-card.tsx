// What went wrong, in plain words, where the answer would have been.
import type { ErrorInfo } from "crablet";
import { wordsFor } from "../ui/error-words";
import { AlertIcon, RetryIcon } from "../ui/icons";
import { retry } from "./conversation";
import { focusPrompt } from "./prompt-field";
import type { NoticeItem } from "./transcript";

export function ErrorCard({ error }: { readonly error: ErrorInfo }) {
  const { title, advice } = wordsFor(error);
  const tryAgain = () => {
    retry();
    focusPrompt();
  };
  return (
    <div class="error-card" role="alert" data-error={error.kind}>
      <AlertIcon />
      <div class="error-words">
        <strong>{title}</strong>
        <p>{advice}</p>
        <p class="error-message">{error.message}</p>
      </div>
      <button type="button" class="quiet-button" onClick={tryAgain}>
        <RetryIcon /> Try again
      </button>
    </div>
  );
}

export function Notice({ item }: { readonly item: NoticeItem }) {
  return (
    <p class="notice" role="status">
      <RetryIcon />
      <span>
        {item.error && `${wordsFor(item.error).title}. `}
        {item.text}
      </span>
    </p>
  );
}
