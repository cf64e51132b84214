// What a tool returned: text, pictures, sound, and tables of structured values.
import type { FilePart, TextPart } from "crablet";
import { Scrollable } from "../ui/scrollable";
import { tableOf, textOf, type TableData } from "./tool-output";

/** The kinds of picture that can do nothing but be looked at. */
const PICTURE = /^image\/(?:png|jpeg|gif|webp|avif)$/;

export interface ToolResultProps {
  readonly content: readonly (TextPart | FilePart)[];
  /** The structured value, where there is one. */
  readonly value: unknown;
}

export function ToolResult({ content, value }: ToolResultProps) {
  const text = textOf(content);
  const table = tableOf(value);
  const files = content.filter((part): part is FilePart => part.type !== "text");
  return (
    <>
      {table && <Table table={table} />}
      {text !== "" && <Scrollable>{text}</Scrollable>}
      {files.map((file) => (
        <File key={file} file={file} />
      ))}
      {content.length === 0 && <p class="help">Nothing was returned.</p>}
    </>
  );
}

function Table({ table }: { readonly table: TableData }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by those who have no pointer
    <section class="table-scroll tool-table" tabIndex={0} aria-label="Result as a table">
      <table>
        <thead>
          <tr>
            {table.columns.map((column) => (
              <th key={column}>{column}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row) => (
            <tr key={row}>
              {row.map((cell, column) => (
                <td key={table.columns[column]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Only what came with the result is shown: an address is named, never loaded. */
function File({ file }: { readonly file: FilePart }) {
  const source = file.data === undefined ? undefined : `data:${file.mediaType};base64,${file.data}`;
  if (source && PICTURE.test(file.mediaType)) return <img src={source} alt={file.name ?? "What the tool returned"} />;
  if (source && file.mediaType.startsWith("audio/")) {
    // biome-ignore lint/a11y/useMediaCaption: a tool's sound comes without captions
    return <audio controls src={source} />;
  }
  return (
    <p class="help">
      {file.name ?? "A file"} ({file.mediaType}){file.url && `: ${file.url}`}
    </p>
  );
}
