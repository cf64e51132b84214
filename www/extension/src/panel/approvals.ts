// The calls that wait for a decision.
import type { PendingApproval } from "crablet";
import { byId, make } from "./elements.js";

export class Approvals {
  readonly #place = byId("approvals");
  readonly #decide: (callId: string, allow: boolean) => void;
  readonly #shown = new Map<string, HTMLElement>();

  constructor(decide: (callId: string, allow: boolean) => void) {
    this.#decide = decide;
  }

  show(pending: readonly PendingApproval[]): void {
    const open = new Set(pending.map(({ callId }) => callId));
    for (const [callId, element] of this.#shown) {
      if (open.has(callId)) continue;
      element.remove();
      this.#shown.delete(callId);
    }
    for (const call of pending) {
      if (this.#shown.has(call.callId)) continue;
      const element = this.#question(call);
      this.#shown.set(call.callId, element);
      this.#place.append(element);
    }
  }

  #question({ callId, toolName, input }: PendingApproval): HTMLElement {
    const allow = make("button", "", "Allow");
    const deny = make("button", "quiet", "Deny");
    for (const [button, decision] of [
      [allow, true],
      [deny, false],
    ] as const) {
      button.type = "button";
      button.setAttribute("aria-label", `${decision ? "Allow" : "Deny"} ${toolName}`);
      button.addEventListener("click", () => {
        allow.disabled = true;
        deny.disabled = true;
        this.#decide(callId, decision);
      });
    }
    const element = make(
      "section",
      "approval",
      make("p", "question", "May the agent use ", make("code", "", toolName), "?"),
      make("pre", "", JSON.stringify(input, undefined, 2) ?? ""),
      make("div", "actions", allow, deny),
    );
    element.setAttribute("role", "alert");
    return element;
  }
}
