// The panel beside the conversation (or over it, where there is no room): connection and inspector, one at a time.
import { useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { ExposedSection } from "../connection/exposed-section";
import { ModelForm } from "../connection/model-form";
import { ServerList } from "../connection/server-list";
import { InspectorPanel } from "../inspector/inspector-panel";
import { CloseIcon } from "./icons";

const TABS = [
  { id: "connection", label: "Connection" },
  { id: "inspector", label: "Inspector" },
] as const;

type TabId = (typeof TABS)[number]["id"];

export function SidePanel({
  firstTabRef,
  onClose,
}: {
  readonly firstTabRef: RefObject<HTMLButtonElement | null>;
  readonly onClose: () => void;
}) {
  const chosen = useSignal<TabId>("connection");

  // The arrow keys move between tabs, as in every tab list.
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const next = TABS.find((tab) => tab.id !== chosen.value);
    if (!next) return;
    chosen.value = next.id;
    document.getElementById(`tab-${next.id}`)?.focus();
  };

  return (
    <aside class="panel" id="panel" aria-label="Connection and inspector">
      <div class="panel-head">
        <div class="tabs" role="tablist" onKeyDown={onKeyDown}>
          {TABS.map(({ id, label }, index) => (
            <button
              key={id}
              id={`tab-${id}`}
              type="button"
              role="tab"
              ref={index === 0 ? firstTabRef : null}
              aria-selected={chosen.value === id}
              aria-controls="panel-body"
              tabIndex={chosen.value === id ? 0 : -1}
              onClick={() => (chosen.value = id)}
            >
              {label}
            </button>
          ))}
        </div>
        <button type="button" class="icon-button panel-close" onClick={onClose} aria-label="Close">
          <CloseIcon />
        </button>
      </div>
      <div id="panel-body" role="tabpanel" aria-labelledby={`tab-${chosen.value}`}>
        {chosen.value === "connection" ? (
          <>
            <ModelForm />
            <ServerList />
            <ExposedSection />
          </>
        ) : (
          <InspectorPanel />
        )}
      </div>
    </aside>
  );
}
