// What the panel and the service worker say to each other. All of it is plain data.
import type { Message, SessionState } from "crablet";
import type { Settings, SettingsView } from "./settings.js";

/** What the panel asks for. Each is answered when it is done, so that none is lost when the worker is stopped meanwhile. */
export type Request =
  | { readonly type: "send"; readonly text: string }
  | { readonly type: "decide"; readonly callId: string; readonly allow: boolean }
  | { readonly type: "stop" | "resume" | "clear" | "unpair" }
  | { readonly type: "pair"; readonly code: string; readonly url: string }
  | {
      readonly type: "save";
      readonly settings: Settings;
      /** Absent when the key stays as it is. */
      readonly key?: string;
      /** Whether the key is written to disk. */
      readonly remember: boolean;
    };

/** How a request went. */
export type Reply = { readonly done: true } | { readonly failure: string };

/** What the worker shows, over the port that the panel opens. */
export type Shown =
  | { readonly type: "settings"; readonly settings: SettingsView }
  | {
      readonly type: "session";
      /** The messages from this place on; those before it have not changed. */
      readonly from: number;
      readonly messages: readonly Message[];
      readonly state: Omit<SessionState, "messages">;
    };

/** The name of that port. */
export const PORT = "panel";
