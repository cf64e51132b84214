import { describe, expect, it } from "vitest";
import { fieldsOf, valuesOf } from "./form-fields";

const schema = {
  type: "object",
  properties: {
    name: { type: "string", title: "Name", minLength: 2 },
    mail: { type: "string", format: "email" },
    age: { type: "integer", minimum: 1, default: 30 },
    agree: { type: "boolean", default: true },
    color: { type: "string", enum: ["r", "g"], enumNames: ["Red", "Green"] },
    size: { type: "string", oneOf: [{ const: "s", title: "Small" }, { const: "l" }], default: "l" },
    tags: { type: "array", items: { anyOf: [{ const: "a", title: "A" }, { const: "b" }] }, default: ["b"] },
    odd: 7,
  },
  required: ["name"],
};

describe("the fields of a form", () => {
  it("are of the kinds that the schema names", () => {
    const fields = fieldsOf(schema);
    expect(fields.map(({ kind }) => kind)).toEqual([
      "text",
      "email",
      "number",
      "checkbox",
      "select",
      "select",
      "multiple",
      "text",
    ]);
    expect(fields[0]).toMatchObject({ label: "Name", isRequired: true, limits: { minLength: 2 } });
    expect(fields[4]?.options[1]).toEqual({ value: "g", label: "Green" });
    expect(fields[5]).toMatchObject({ initial: ["l"], isRequired: false });
    expect(fields[6]?.options).toEqual([
      { value: "a", label: "A" },
      { value: "b", label: "b" },
    ]);
  });

  it("give values of the types that the schema wants, and nothing where nothing was given", () => {
    const data = new FormData();
    data.set("name", "Ada");
    data.set("mail", "");
    data.set("age", "36");
    data.append("tags", "a");
    data.append("tags", "b");
    expect(valuesOf(fieldsOf(schema), data)).toEqual({ name: "Ada", age: 36, agree: false, tags: ["a", "b"] });
  });
});
