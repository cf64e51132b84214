/** A tool's own name, where its server's name stands before it: `files__read` of the server `files` is `read`. */
export function ownName(name: string, server: string | undefined): string {
  return server !== undefined && name.startsWith(`${server}__`) ? name.slice(server.length + 2) : name;
}
