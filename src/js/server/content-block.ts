import { type ToolOutput, toolOutput } from "../tool.js";

/** A block of a tool's content, in the words of the protocol. */
export type ContentBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image" | "audio"; readonly data: string; readonly mimeType: string }
  | {
      readonly type: "resource_link";
      readonly uri: string;
      readonly name: string;
      readonly title?: string;
      readonly description?: string;
      readonly mimeType?: string;
    }
  | {
      readonly type: "resource";
      readonly resource: {
        readonly uri: string;
        readonly mimeType?: string;
        readonly text?: string;
        readonly blob?: string;
      };
    };

/**
 * What a tool of a server returns whose content `toolOutput` cannot say, such as resources with an address. Clients of revisions
 * that lack a kind of block get the nearest that they have.
 */
export function contentBlocks(blocks: readonly ContentBlock[]): ToolOutput {
  return toolOutput({ content: blocks as unknown as NonNullable<ToolOutput["content"]> });
}
