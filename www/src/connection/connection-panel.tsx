// What the page is connected to: the model and the MCP servers.
import type { RefObject } from "preact";
import { CloseIcon } from "../ui/icons";
import { ModelForm } from "./model-form";
import { ServerList } from "./server-list";

export function ConnectionPanel({ headingRef, onClose }: { readonly headingRef: RefObject<HTMLHeadingElement | null>; readonly onClose: () => void }) {
  return (
    <aside class="panel" id="connection" aria-labelledby="connection-heading">
      <div class="panel-head">
        <h2 id="connection-heading" tabIndex={-1} ref={headingRef}>
          Connection
        </h2>
        <button type="button" class="icon-button panel-close" onClick={onClose} aria-label="Close">
          <CloseIcon />
        </button>
      </div>
      <ModelForm />
      <ServerList />
    </aside>
  );
}
