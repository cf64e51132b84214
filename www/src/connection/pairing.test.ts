import { describe, expect, it } from "vitest";
import { withPaired } from "./pairing";
import type { ServerSettings, ShimServerSettings } from "./server-settings";

const shim = (name: string, token: string, url = ""): ShimServerSettings => ({ type: "shim", name, url, token });

describe("the servers of a pairing", () => {
  it("come after those that are there", () => {
    const one = shim("one", "a");
    expect(withPaired([one], [shim("two", "b")])).toEqual({
      servers: [one, shim("two", "b")],
      opened: [shim("two", "b")],
      taken: [],
    });
  });

  it("get the new token where the same shim opened them before, at its default address too", () => {
    const renewed = shim("one", "new", "ws://127.0.0.1:6735");
    expect(withPaired([shim("one", "old")], [renewed]).servers).toEqual([renewed]);
  });

  it("take no other server's place", () => {
    const servers: ServerSettings[] = [
      { type: "http", name: "one", url: "https://one.example/mcp" },
      shim("two", "a", "ws://127.0.0.1:7000"),
    ];
    const paired = withPaired(servers, [shim("one", "b"), shim("two", "b"), shim("three", "b")]);
    expect(paired.servers).toEqual([...servers, shim("three", "b")]);
    expect(paired.taken).toEqual(["one", "two"]);
  });
});
