/**
 * What is known of models: their limits, what they read, what they cost, and where that stands. Nothing needs it; a model that
 * is not in it works like any other.
 *
 * @packageDocumentation
 */
import bundled from "#catalog";
import type { Model, Prices } from "./model.js";

/** What is known of a model. What was not found is absent, and never guessed. */
export interface ModelInfo {
  /** The provider, as `Model.provider` names it. */
  readonly provider: string;
  /** The provider's name of the model. */
  readonly id: string;
  /** The most tokens that a request and its answer have together. */
  readonly contextWindow?: number;
  /** The most tokens of an answer. */
  readonly outputLimit?: number;
  /** What it reads. */
  readonly input?: readonly ("text" | "image" | "audio" | "video" | "file")[];
  /** Whether it can reason before it answers. */
  readonly reasoning?: boolean;
  /** What a million tokens cost, in US dollars. */
  readonly prices?: Prices;
  /** Where that stands, and when it was read there. */
  readonly sources?: readonly ModelSource[];
  /** What the numbers do not say. */
  readonly note?: string;
}

/** Where something in the catalogue stands. */
export interface ModelSource {
  readonly of: "prices" | "limits";
  readonly url: string;
  /** When it was read there: `YYYY-MM-DD`. */
  readonly date: string;
  /** Who read it there, where that was somebody else who publishes it. */
  readonly via?: string;
}

/** Models and what is known of them. Never changes: `with` makes another one. */
export class ModelCatalog {
  readonly models: readonly ModelInfo[];

  /** A catalogue of these models, none by default. */
  constructor(models: readonly ModelInfo[] = []) {
    this.models = models;
  }

  /** This catalogue with further models, each in the place of one of the same provider and name. */
  with(...models: readonly ModelInfo[]): ModelCatalog {
    const isReplaced = ({ provider, id }: ModelInfo): boolean =>
      models.some((model) => model.provider === provider && model.id === id);
    return new ModelCatalog([...this.models.filter((model) => !isReplaced(model)), ...models]);
  }

  /**
   * What is known of a model. A dated name such as `gpt-5.2-2025-12-11` is found under its name without the date, and one of
   * Bedrock also with a region before it.
   */
  find({ provider, id }: { readonly provider: string; readonly id: string }): ModelInfo | undefined {
    const plain = provider === "bedrock" ? id.replace(/^(us|eu|apac|jp|au|global)\./, "") : id;
    const known = this.models.filter((model) => model.provider === provider);
    const isDated = (model: ModelInfo): boolean =>
      plain.startsWith(model.id) && /^-(\d{8}|\d{4}-\d{2}-\d{2})$/.test(plain.slice(model.id.length));
    return known.find((model) => model.id === plain) ?? known.find(isDated);
  }

  /**
   * The model with what is known of it: its prices, so that usage has a cost and `maxCost` works, and what files it reads. What
   * the model says itself stays.
   */
  describe(model: Model): Model {
    const known = this.find(model);
    if (known === undefined) return model;
    const settings = model.settings();
    const { prices = known.prices, accepts = filesOf(known), ...options } = settings.options;
    const described = { ...options, ...(prices && { prices }), ...(accepts && { accepts }) };
    return { ...model, settings: () => ({ ...settings, options: described }) };
  }
}

/** The models that were looked up for this version of crablet. */
export const catalog: ModelCatalog = /* @__PURE__ */ new ModelCatalog(bundled.models);

function filesOf({ input }: ModelInfo): ("image" | "audio" | "file")[] | undefined {
  if (input === undefined) return undefined;
  const kinds = ["image", "audio", "file"] as const;
  return kinds.filter((kind) => input.includes(kind));
}
