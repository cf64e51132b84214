// The settings. A key that was entered leaves the page with the form and never comes back.
import type { Request } from "../messages.js";
import { originOf, type Settings, type SettingsView } from "../settings.js";
import { byId } from "./elements.js";

export class SettingsForm {
  readonly #section = byId("settings");
  readonly #button = byId<HTMLButtonElement>("open-settings");
  readonly #provider = byId<HTMLSelectElement>("provider");
  readonly #baseUrl = byId<HTMLInputElement>("base-url");
  readonly #model = byId<HTMLInputElement>("model");
  readonly #key = byId<HTMLInputElement>("key");
  readonly #remember = byId<HTMLInputElement>("remember");
  readonly #asks = byId<HTMLInputElement>("asks");
  readonly #native = byId<HTMLInputElement>("native");
  readonly #code = byId<HTMLInputElement>("code");
  readonly #shimUrl = byId<HTMLInputElement>("shim-url");
  readonly #ask: (request: Request) => Promise<boolean>;
  #isFirst = true;

  /** @param ask asks the worker, shows a failure, and says whether it was done */
  constructor(ask: (request: Request) => Promise<boolean>) {
    this.#ask = ask;
    this.#button.addEventListener("click", () => this.#open(this.#section.hidden !== false));
    this.#provider.addEventListener("change", () => this.#showAddress());
    byId("model-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#save();
    });
    byId("shim-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#pair();
    });
    byId("native-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#useNative();
    });
    byId("unpair").addEventListener("click", () => void ask({ type: "unpair" }));
    byId("allow-access").addEventListener("click", () => void this.#allowAccess());
  }

  show(view: SettingsView): void {
    this.#provider.value = view.provider;
    this.#baseUrl.value = view.baseUrl;
    this.#model.value = view.model;
    this.#asks.checked = view.asksBeforeTools;
    this.#native.value = view.nativeServers.join(", ");
    this.#showAddress();
    byId("key-hint").textContent = view.hasKey
      ? "There is a key. Leave this empty to keep it."
      : "There is no key yet. It is sent to the provider and nobody else.";
    byId("servers").textContent =
      view.servers.length > 0 ? `Connected: ${view.servers.join(", ")}` : "None is connected.";
    byId("unpair").hidden = view.servers.length === 0;
    if (this.#isFirst && !view.hasKey && view.provider !== "compatible") this.#open(true);
    this.#isFirst = false;
    void this.#showAccess(view);
  }

  #open(isOpen: boolean): void {
    this.#section.hidden = !isOpen;
    this.#button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) this.#provider.focus();
  }

  #showAddress(): void {
    byId("address").hidden = this.#provider.value !== "compatible";
  }

  #settings(): Settings {
    return {
      provider: this.#provider.value as Settings["provider"],
      model: this.#model.value.trim(),
      baseUrl: this.#baseUrl.value.trim(),
      asksBeforeTools: this.#asks.checked,
      nativeServers: this.#native.value.split(/[,\s]+/).filter((name) => name !== ""),
    };
  }

  async #save(): Promise<void> {
    const key = this.#key.value.trim();
    this.#key.value = "";
    const request = { type: "save", settings: this.#settings(), remember: this.#remember.checked } as const;
    if (await this.#ask(key === "" ? request : { ...request, key })) this.#open(false);
  }

  async #pair(): Promise<void> {
    const code = this.#code.value.trim();
    if (await this.#ask({ type: "pair", code, url: this.#shimUrl.value.trim() })) this.#code.value = "";
  }

  async #useNative(): Promise<void> {
    const settings = this.#settings();
    if (settings.nativeServers.length > 0) await chrome.permissions.request({ permissions: ["nativeMessaging"] });
    if (await this.#ask({ type: "save", settings, remember: false })) this.#open(false);
  }

  /** A server that sends no CORS headers can be reached once the user lets the extension reach it. */
  async #showAccess(settings: Settings): Promise<void> {
    const origin = originOf(settings);
    const isAllowed = await chrome.permissions.contains({ origins: [patternOf(origin)] });
    byId("access").hidden = isAllowed;
    byId("access-text").textContent = `${origin} may refuse pages. Allow the extension to reach it if it does.`;
  }

  async #allowAccess(): Promise<void> {
    await chrome.permissions.request({ origins: [patternOf(originOf(this.#settings()))] });
    await this.#showAccess(this.#settings());
  }
}

/** Patterns of hosts have no port. */
function patternOf(origin: string): string {
  const { protocol, hostname } = new URL(origin);
  return `${protocol}//${hostname}/*`;
}
