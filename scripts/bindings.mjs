// The glue of wasm-bindgen as the facade takes it: a function, since after a trap there must be a second instance, with variables
// of its own. What is inside of a function no bundler takes out, so what wasm-bindgen writes many times, or for platforms that the
// package does not run on, is written shorter here.

/** The module that src/js/load/bindings.d.ts declares; `further` runs with each instance. */
export function bindingsOf(glue, further = "") {
  let short = glue;
  for (const [what, pattern, replacement] of REWRITTEN) {
    const rewritten = short.replaceAll(pattern, replacement);
    if (rewritten === short) throw unknownForm(what);
    short = rewritten;
  }
  const left = /^(?:export|import) .*|\w+Finalization\b|__destroy_into_raw|deferred\d|handleError|logError/m.exec(
    short,
  );
  if (left !== null) throw unknownForm(`"${left[0]}"`);
  return `export function createBindings(guard, { setTimeout, clearTimeout }) {
${short}
${SHARED}
${further}return {
  AgentHandle, McpHandle, SseHandle, CancelHandle,
  imports: __wbg_get_imports(),
  start(instance) {
    wasm = guard(instance.exports);
    wasm.__wbindgen_start();
  },
};
}
`;
}

/** What is written in another way, in this order: what it is, its form, and what stands in its place. */
const REWRITTEN = [
  ["comments", /^ *(?:\/\*[\s\S]*?\*\/|\/\/.*)\n/gm, ""],
  ["exports", /^export (?:\{.*\};\n)?/gm, ""],
  // Whoever has the module instantiates it: src/js/load.ts.
  ["the loading", /^let wasmModule, wasmInstance, wasm;[\s\S]*$(?![\s\S])/gm, "let wasm;"],

  // Handles are made and released by the facade alone, which TypeScript checks.
  ["checks of a class", /^ *_assertClass\(.*\n|^function _assertClass\([\s\S]*?^\}\n/gm, ""],
  ["what makes a handle disposable", /^if \(Symbol\.dispose\).*\n/gm, ""],
  ["the registry of a class", /^const \w+HandleFinalization =[\s\S]*?;\n/gm, ""],
  [
    "releasing",
    /^ *__destroy_into_raw\(\) \{[\s\S]*?^ {4}\}\n( *free\(\) \{)[\s\S]*?(wasm\.\w+)\(ptr, 0\);\n *\}/gm,
    "$1 release(this, $2); }",
  ],
  [
    "registering",
    /(\w+)Finalization\.register\((\w+), .*\);/g,
    (_line, name, handle) => `register(${handle}, wasm.__wbg_${name.toLowerCase()}_free);`,
  ],
  ["the pointer of a handle", /__wbg_ptr/g, "pointer"],
  ["missing registries", /\(typeof FinalizationRegistry === 'undefined'\)\s*\? .*\s*: (?=new Fin)/g, ""],

  [
    "imports that may throw",
    /function\(\) \{ return handleError\(function (\([^)]*\)) (\{[\s\S]*?\}), arguments\); \}/g,
    "caught($1 => $2)",
  ],
  ["the function that catches", /^function handleError\([\s\S]*?^\}\n/gm, ""],
  ["imports", /^( {8}\w+: )function(\([^)]*\)) \{/gm, "$1$2 => {"],
  ["values that may be missing", /isLikeNone\((\w+)\) \? 0 : addToExternrefTable0\(\1\)/g, "optional($1)"],

  ["the function that writes a text", /^function passStringToWasm0\([\s\S]*?^\}\n/gm, ""],
  ["texts that are given", /passStringToWasm0\((\w+), wasm\.\w+, wasm\.\w+\)/g, "passText($1)"],
  ["texts that may be missing", /isLikeNone\((\w+)\) \? 0 : passText\(\1\)/g, "optionalText($1)"],
  [
    "texts that imports return",
    /\w+ ptr1 = (\w+\(ret\));\s*\w+ len1 = WASM_VECTOR_LEN;\s*.*\(arg0 \+ 4 \* 1, len1, true\);\s*.*\(arg0 \+ 4 \* 0, ptr1, true\);/g,
    "returnText(arg0, $1);",
  ],
  [
    "texts that exports return",
    /let deferred(\d)_0;\s*let deferred\1_1;\s*try \{([\s\S]*?)const ret = (wasm.*);\s[\s\S]*?finally \{[\s\S]*?\}/g,
    "$2return takeText($3);",
  ],
  [
    "errors that exports return",
    /if \((ret\[\d\])\) \{\s*throw takeFromExternrefTable0\((ret\[\d\])\);\s*\}/g,
    "check($1, $2);",
  ],

  [
    "the function that looks into memory",
    /if \(cachedDataViewMemory0 === null \|\| .*\) \{/g,
    "if (cachedDataViewMemory0?.buffer !== wasm.memory.buffer) {",
  ],
  ["old encoders", /^if \(!\('encodeInto' in cachedTextEncoder\)\) \{[\s\S]*?^\}\n/gm, ""],
];

/** What takes the place of what is written many times. */
const SHARED = `
const handles = new FinalizationRegistry(([free, pointer]) => free(pointer, 1));

function register(handle, free) {
  handles.register(handle, [free, handle.pointer], handle);
}

function release(handle, free) {
  const { pointer } = handle;
  handle.pointer = 0;
  handles.unregister(handle);
  free(pointer, 0);
}

function caught(call) {
  return (...given) => {
    try {
      return call(...given);
    } catch (thrown) {
      wasm.__wbindgen_exn_store(addToExternrefTable0(thrown));
    }
  };
}

function check(isError, index) {
  if (isError) throw takeFromExternrefTable0(index);
}

function optional(value) {
  return isLikeNone(value) ? 0 : addToExternrefTable0(value);
}

function optionalText(text) {
  return isLikeNone(text) ? 0 : passText(text);
}

/** Writes a text into memory, and its length to WASM_VECTOR_LEN: ASCII letter by letter, what comes after by the encoder. */
function passText(text) {
  let length = text.length;
  let pointer = wasm.__wbindgen_malloc(length, 1) >>> 0;
  const memory = getUint8ArrayMemory0();
  let written = 0;
  for (; written < length; written++) {
    const code = text.charCodeAt(written);
    if (code > 127) break;
    memory[pointer + written] = code;
  }
  if (written !== length) {
    const rest = text.slice(written);
    pointer = wasm.__wbindgen_realloc(pointer, length, (length = written + rest.length * 3), 1) >>> 0;
    written += cachedTextEncoder.encodeInto(rest, getUint8ArrayMemory0().subarray(pointer + written, pointer + length)).written;
    pointer = wasm.__wbindgen_realloc(pointer, length, written, 1) >>> 0;
  }
  WASM_VECTOR_LEN = written;
  return pointer;
}

function returnText(to, pointer) {
  const memory = getDataViewMemory0();
  memory.setInt32(to + 4, WASM_VECTOR_LEN, true);
  memory.setInt32(to, pointer, true);
}

/** Reads a text that the module gives away, if there is no error. */
function takeText([pointer, length, error, isError]) {
  check(isError, error);
  try {
    return getStringFromWasm0(pointer, length);
  } finally {
    wasm.__wbindgen_free(pointer, length, 1);
  }
}
`;

function unknownForm(what) {
  return new Error(`wasm-bindgen writes its glue in another form now (${what}): adapt scripts/bindings.mjs`);
}
