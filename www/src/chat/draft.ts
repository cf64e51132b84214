// The message that is being written. The panel may write it too: what a server's prompt says.
import { signal } from "@preact/signals";

export const draft = signal("");
