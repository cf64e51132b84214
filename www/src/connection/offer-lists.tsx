// The lists of what a connected server offers: tools, resources and prompts, each with the number of its entries.
import type { ComponentChildren } from "preact";
import { ChevronIcon } from "../ui/icons";
import { PromptEntry } from "./prompt-entry";
import { ResourceEntry, TemplateEntry } from "./resource-entry";
import type { Offers } from "./server-offers";
import type { ServerSettings } from "./server-settings";
import { ToolEntry } from "./tool-entry";

export function OfferLists({ offers, settings }: { readonly offers: Offers; readonly settings: ServerSettings }) {
  const { tools, resources, templates, prompts, problem } = offers;
  return (
    <>
      <OfferList kind="tool" count={tools.length}>
        {tools.map((tool) => (
          <li key={tool.name}>
            <ToolEntry tool={tool} settings={settings} />
          </li>
        ))}
      </OfferList>
      {resources.length + templates.length > 0 && (
        <OfferList kind="resource" count={resources.length + templates.length}>
          {resources.map((resource) => (
            <li key={resource.uri}>
              <ResourceEntry resource={resource} settings={settings} />
            </li>
          ))}
          {templates.map((template) => (
            <li key={template.uriTemplate}>
              <TemplateEntry template={template} settings={settings} />
            </li>
          ))}
        </OfferList>
      )}
      {prompts.length > 0 && (
        <OfferList kind="prompt" count={prompts.length}>
          {prompts.map((prompt) => (
            <li key={prompt.name}>
              <PromptEntry prompt={prompt} settings={settings} />
            </li>
          ))}
        </OfferList>
      )}
      {problem && <p class="problem">Resources and prompts could not be listed: {problem.message}</p>}
    </>
  );
}

interface OfferListProps {
  readonly kind: "tool" | "resource" | "prompt";
  readonly count: number;
  readonly children: ComponentChildren;
}

function OfferList({ kind, count, children }: OfferListProps) {
  return (
    <details class="offers" data-kind={kind}>
      <summary>
        <ChevronIcon />
        {count} {count === 1 ? kind : `${kind}s`}
      </summary>
      <ul>{children}</ul>
    </details>
  );
}
