import { expect, test } from "vitest";
import { sampleInput } from "./sample-input";

test("a tool is tried with its required members, each of its type", () => {
  const schema = {
    type: "object",
    properties: {
      path: { type: "string" },
      count: { type: "integer" },
      deep: { type: "object", properties: { on: { type: "boolean" } }, required: ["on"] },
      sort: { enum: ["name", "size"] },
      head: { type: "number", default: 10 },
      list: { type: "array" },
      left: { type: "string" },
    },
    required: ["path", "count", "deep", "sort", "head", "list", "undescribed"],
  };
  expect(sampleInput(schema)).toEqual({
    path: "",
    count: 0,
    deep: { on: false },
    sort: "name",
    head: 10,
    list: [],
    undescribed: "",
  });
});

test("a schema that says nothing gives nothing", () => {
  expect(sampleInput({})).toEqual({});
  expect(sampleInput({ properties: 1, required: "x" })).toEqual({});
});
