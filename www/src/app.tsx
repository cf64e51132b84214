// The page: a header, the conversation, and the panel beside it (or over it, where there is no room).
import { signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ChatView } from "./chat/chat-view";
import { isEmpty, reset } from "./chat/conversation";
import { focusPrompt } from "./chat/prompt-field";
import { keepOverReload, loadKept } from "./chat/session-file";
import { loadDemo } from "./connection/demo";
import { ElicitationDialog } from "./connection/elicitation-dialog";
import { reconnectAll, serverStates } from "./connection/servers";
import { isScripted, keepForSession, modelSettings, serverSettings } from "./connection/settings";
import { Logo, PlusIcon, SettingsIcon, ThemeIcon } from "./ui/icons";
import { SidePanel } from "./ui/side-panel";
import { toggleTheme } from "./ui/theme";

/** Whether there is no room for the panel beside the conversation, as the style sheet has it. */
const narrow = matchMedia("(width < 960px)");
const isNarrow = signal(narrow.matches);
narrow.addEventListener("change", () => (isNarrow.value = narrow.matches));

/** Whether the user has opened the panel over the conversation; where both fit it is always there. */
const isPanelOpen = signal(false);

export function App() {
  const panelButton = useRef<HTMLButtonElement>(null);
  const firstTab = useRef<HTMLButtonElement>(null);
  const isOver = isPanelOpen.value && isNarrow.value;

  useEffect(() => {
    void start();
  }, []);

  // The focus goes into the panel when it opens, and back to where it was opened from.
  const wasOver = useRef(false);
  useEffect(() => {
    if (isOver) firstTab.current?.focus();
    else if (wasOver.current) panelButton.current?.focus();
    wasOver.current = isOver;
    if (!isOver) return;
    const closeWithEscape = (event: KeyboardEvent) => {
      if (event.key === "Escape") isPanelOpen.value = false;
    };
    document.addEventListener("keydown", closeWithEscape);
    return () => document.removeEventListener("keydown", closeWithEscape);
  }, [isOver]);

  const open = () => {
    isPanelOpen.value = true;
    firstTab.current?.focus();
  };
  const close = () => {
    isPanelOpen.value = false;
  };

  return (
    <div class="app" data-panel={isOver ? "open" : "closed"}>
      <header class="header" inert={isOver}>
        <h1 class="brand">
          <Logo />
          <span>crablet</span>
          <span class="brand-note">playground</span>
        </h1>
        <ModelChip onClick={open} buttonRef={panelButton} isExpanded={isNarrow.value ? isOver : undefined} />
        <button
          type="button"
          class="icon-button"
          onClick={() => {
            reset();
            focusPrompt();
          }}
          disabled={isEmpty.value}
          aria-label="New conversation"
          title="New conversation"
        >
          <PlusIcon />
        </button>
        <button
          type="button"
          class="icon-button"
          onClick={toggleTheme}
          aria-label="Dark or light"
          title="Dark or light"
        >
          <ThemeIcon />
        </button>
      </header>
      <main class="main" inert={isOver}>
        <ChatView />
      </main>
      <SidePanel firstTabRef={firstTab} onClose={close} />
      <ElicitationDialog />
      {isOver && <button type="button" class="backdrop" tabIndex={-1} onClick={close} aria-label="Close the panel" />}
    </div>
  );
}

function ModelChip(props: {
  readonly onClick: () => void;
  readonly buttonRef: RefObject<HTMLButtonElement | null>;
  /** Whether the panel is open; `undefined` where it is always there. */
  readonly isExpanded: boolean | undefined;
}) {
  const states = [...serverStates.value.values()];
  const failed = states.filter((state) => state.status === "failed").length;
  const ready = states.filter((state) => state.status === "ready").length;
  const servers =
    failed > 0 ? `${failed} of ${states.length} servers failed` : `${ready} ${ready === 1 ? "server" : "servers"}`;
  return (
    <button
      type="button"
      class="chip"
      data-state={failed > 0 ? "failed" : "ready"}
      ref={props.buttonRef}
      onClick={props.onClick}
      aria-expanded={props.isExpanded}
      aria-controls="panel"
      title="Connection"
    >
      <SettingsIcon />
      <span class="chip-model">{modelSettings.value.model || "No model"}</span>
      {isScripted.value && <span class="badge">scripted</span>}
      {states.length > 0 && <span class="chip-servers">{servers}</span>}
    </button>
  );
}

/** A demo's settings win over nothing, but not over what the user had kept. */
async function start(): Promise<void> {
  const given = await loadDemo();
  if (given && !keepForSession.value) {
    modelSettings.value = given.model;
    serverSettings.value = given.servers;
  }
  reconnectAll();
  keepOverReload();
  await loadKept();
}
