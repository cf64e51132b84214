// Gives the imports and exports of a module of wasm-bindgen short names, in the module and in its glue: the names that it makes
// hold a hash each, which is written twice and which nothing compresses. Exports that must not throw keep a mark for
// src/js/life.ts: they begin with an underscore.

/** Returns `{ module, glue }` with the new names. */
export function shortNames(module, glue) {
  let imported = 0;
  let exported = 0;
  const importNames = new Map();
  const exportNames = new Map();
  const sections = [module.subarray(0, 8)];
  for (const { id, content } of sectionsOf(module)) {
    const written =
      id === IMPORTS
        ? imports(content, (name) => remembered(importNames, name, () => `i${(imported++).toString(36)}`))
        : id === EXPORTS
          ? exports(content, (name) =>
              name === "memory"
                ? name
                : remembered(
                    exportNames,
                    name,
                    () => `${IS_SILENT.test(name) ? "_" : "e"}${(exported++).toString(36)}`,
                  ),
            )
          : content;
    sections.push(Buffer.from([id]), leb(written.length), written);
  }
  const short = glue
    .replaceAll(/^( {8})(\w+)(?=: )/gm, (line, space, name) =>
      importNames.has(name) ? `${space}${importNames.get(name)}` : line,
    )
    .replaceAll(/\bwasm\.(\w+)/g, (access, name) => (exportNames.has(name) ? `wasm.${exportNames.get(name)}` : access));
  const left = [...importNames.keys(), ...exportNames.keys()].find(
    (name) => short.includes(`${name}: `) || new RegExp(`\\bwasm\\.${name}\\b`).test(short),
  );
  if (left !== undefined)
    throw new Error(`wasm-bindgen's glue uses ${left} in a form that scripts/short-names.mjs does not know`);
  return { module: Buffer.concat(sections), glue: short };
}

/** The sections of a module (WebAssembly core specification, section 5.5). */
export function* sectionsOf(module) {
  for (let at = 8; at < module.length; ) {
    const id = module[at];
    const size = number(module, at + 1);
    const end = size.end + size.value;
    yield { id, content: module.subarray(size.end, end) };
    at = end;
  }
}

/** An unsigned LEB128 number and where it ends. */
export function number(bytes, at) {
  let [value, factor, end] = [0, 1, at];
  for (;;) {
    const byte = bytes[end];
    end += 1;
    value += (byte & 127) * factor;
    if (byte < 128) return { value, end };
    factor *= 128;
  }
}

const IMPORTS = 2;
const EXPORTS = 7;

/** What the platform calls, and what releases. */
const IS_SILENT = /__closures_|destroy_closure|_free$/;

function imports(content, rename) {
  const count = number(content, 0);
  const written = [content.subarray(0, count.end)];
  let at = count.end;
  for (let left = count.value; left > 0; left--) {
    const module = name(content, at);
    const member = name(content, module.end);
    const end = endOfType(content, member.end);
    written.push(content.subarray(at, module.end), named(rename(member.text)), content.subarray(member.end, end));
    at = end;
  }
  return Buffer.concat(written);
}

function exports(content, rename) {
  const count = number(content, 0);
  const written = [content.subarray(0, count.end)];
  let at = count.end;
  for (let left = count.value; left > 0; left--) {
    const member = name(content, at);
    const { end } = number(content, member.end + 1);
    written.push(named(rename(member.text)), content.subarray(member.end, end));
    at = end;
  }
  return Buffer.concat(written);
}

/** wasm-bindgen imports functions and nothing else. */
function endOfType(content, at) {
  if (content[at] !== 0)
    throw new Error("the module imports something that is no function: adapt scripts/short-names.mjs");
  return number(content, at + 1).end;
}

function name(content, at) {
  const length = number(content, at);
  const end = length.end + length.value;
  return { text: content.subarray(length.end, end).toString(), end };
}

function named(text) {
  const bytes = Buffer.from(text);
  return Buffer.concat([leb(bytes.length), bytes]);
}

function leb(value) {
  const bytes = [];
  let rest = value;
  do {
    bytes.push((rest & 127) | (rest > 127 ? 128 : 0));
    rest = Math.floor(rest / 128);
  } while (rest > 0);
  return Buffer.from(bytes);
}

function remembered(names, name, make) {
  if (!names.has(name)) names.set(name, make());
  return names.get(name);
}
