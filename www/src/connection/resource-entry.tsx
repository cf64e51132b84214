// One resource of a server, or one family of them: what it is, and what it says when it is read.
import { useSignal } from "@preact/signals";
import type { McpResource, McpResourceTemplate } from "crablet";
import type { ComponentChildren } from "preact";
import { ToolResult } from "../chat/tool-result";
import { Field } from "../ui/field";
import { partOf, readResource } from "./server-offers";
import { serverOf, type ServerSettings } from "./server-settings";
import { Trial } from "./trial";

export function ResourceEntry({
  resource,
  settings,
}: {
  readonly resource: McpResource;
  readonly settings: ServerSettings;
}) {
  const { uri, description } = resource;
  return (
    <details class="offer">
      <Summary name={resource.title ?? resource.name} address={uri} description={description} />
      <ReadResource uri={uri} settings={settings} />
    </details>
  );
}

export function TemplateEntry(props: { readonly template: McpResourceTemplate; readonly settings: ServerSettings }) {
  const { uriTemplate, name, title, description } = props.template;
  const uri = useSignal(uriTemplate);
  return (
    <details class="offer">
      <Summary name={title ?? name} address={uriTemplate} description={description} />
      <ReadResource uri={uri.value} settings={props.settings}>
        <Field
          id={`read-${props.settings.name}-${uriTemplate}`}
          label="Address, with a value for each part in braces"
          isAddress
          value={uri.value}
          onInput={(value) => (uri.value = value)}
        />
      </ReadResource>
    </details>
  );
}

function Summary(props: { readonly name: string; readonly address: string; readonly description: string | undefined }) {
  return (
    <summary>
      <span class="offer-name">{props.name}</span>
      <p class="offer-address">{props.address}</p>
      {props.description && <p>{props.description}</p>}
    </summary>
  );
}

interface ReadResourceProps {
  readonly uri: string;
  readonly settings: ServerSettings;
  readonly children?: ComponentChildren;
}

function ReadResource({ uri, settings, children }: ReadResourceProps) {
  return (
    <Trial
      verb="Read it"
      ask={(signal) => readResource(serverOf(settings), uri, signal)}
      show={(contents) => (
        <div class="tool-body">
          <strong>Contents</strong>
          <ToolResult content={contents.map(partOf)} value={undefined} />
        </div>
      )}
    >
      {children}
    </Trial>
  );
}
