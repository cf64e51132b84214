import { describe, expect, it } from "vitest";
import { partOf, partsOf } from "./server-offers";

describe("the contents of a resource", () => {
  it("are text, something to look at or to hear, or a file", () => {
    expect(partOf({ uri: "a://b", text: "" })).toEqual({ type: "text", text: "" });
    expect(partOf({ uri: "a://b", mimeType: "audio/ogg", blob: "AA==" })).toMatchObject({
      type: "audio",
      data: "AA==",
    });
    expect(partOf({ uri: "a://b", blob: "AA==" })).toEqual({
      type: "file",
      mediaType: "application/octet-stream",
      name: "a://b",
      data: "AA==",
    });
  });

  it("are shown where a result embeds them, and what is unknown as its JSON", () => {
    const parts = partsOf([
      { type: "resource", resource: { uri: "a://b", text: "inside" } },
      { type: "resource_link", uri: "a://c" },
    ]);
    expect(parts[0]).toEqual({ type: "text", text: "inside" });
    expect(parts[1]).toMatchObject({ type: "text", text: expect.stringContaining("a://c") });
  });
});
