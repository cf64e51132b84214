// Dark or light: as the system has it, until the user says otherwise. The choice is not a secret, so it is kept.
import { effect, signal } from "@preact/signals";

const STORAGE_KEY = "crablet.theme";

type Theme = "dark" | "light";

const chosen = signal<Theme | undefined>(readChosen());

/** Changes to the other theme. */
export function toggleTheme(): void {
  const isDark = chosen.value ? chosen.value === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  chosen.value = isDark ? "light" : "dark";
}

effect(() => {
  if (!chosen.value) return;
  document.documentElement.dataset.theme = chosen.value;
  try {
    localStorage.setItem(STORAGE_KEY, chosen.value);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
});

function readChosen(): Theme | undefined {
  try {
    const value = localStorage.getItem(STORAGE_KEY);
    return value === "dark" || value === "light" ? value : undefined;
  } catch {
    return undefined;
  }
}
