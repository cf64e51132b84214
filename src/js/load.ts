import { createBindings } from "#bindings";
import { defaultModule } from "#module";

import type { Core } from "./core.js";
import { CrabletError, messageOf } from "./error.js";
import { Life } from "./life.js";

/** Where the module can be taken from: compiled, as bytes, as a response, or at an address. */
export type WasmSource = WebAssembly.Module | BufferSource | Response | URL | string;

let loading: Promise<Core> | undefined;
/** Kept for the instance after one that failed. */
let compiled: WebAssembly.Module | undefined;

/**
 * Loads the module from a source of your own, or ahead of the first use. Not needed otherwise: the first run loads it.
 * A second call does nothing.
 *
 * @throws CrabletError `internal`, with the platform's own error as its `cause`, when the module cannot be compiled here.
 */
export async function init(source?: WasmSource | PromiseLike<WasmSource>): Promise<void> {
  await load(source);
}

/** @internal */
export function load(source?: WasmSource | PromiseLike<WasmSource>): Promise<Core> {
  // A failure is not kept: the reason may be gone at the next try.
  loading ??= instantiate(source).catch((thrown: unknown) => {
    loading = undefined;
    throw explained(thrown);
  });
  return loading;
}

async function instantiate(source: WasmSource | PromiseLike<WasmSource> | undefined): Promise<Core> {
  const life = new Life();
  const { imports, start, ...bindings } = createBindings((exports) => life.guard(exports), life.timers);
  // Without a source there is nothing to wait for: what the caller does next goes on while the module is compiled.
  const given = compiled ?? (source === undefined ? await defaultModule() : await source);
  const made = await instanceOf(given, imports);
  // Bytes give a module too.
  const isPair = "instance" in made;
  compiled = isPair ? made.module : (given as WebAssembly.Module);
  start(isPair ? made.instance : made);
  life.onEnd(() => {
    loading = undefined;
  });
  return { ...bindings, life };
}

async function instanceOf(
  given: WasmSource,
  imports: WebAssembly.Imports,
): Promise<WebAssembly.Instance | WebAssembly.WebAssemblyInstantiatedSource> {
  const source = typeof given === "string" || given instanceof URL ? await fetch(given) : given;
  if (!isResponse(source)) return WebAssembly.instantiate(source as WebAssembly.Module, imports);
  const isTyped = source.headers.get("content-type") === "application/wasm";
  // Without its media type a module cannot be compiled while it arrives; of one that could not be got the platform tells.
  return (isTyped || !source.ok) && "instantiateStreaming" in WebAssembly
    ? WebAssembly.instantiateStreaming(source, imports)
    : WebAssembly.instantiate(await source.arrayBuffer(), imports);
}

/** Not by its class: Node loads all of its `fetch` when that is named. */
function isResponse(source: object): source is Response {
  return "headers" in source;
}

function explained(thrown: unknown): unknown {
  if (CrabletError.is(thrown)) return thrown;
  const hint = isCompileError(thrown)
    ? ". If this page or extension has a Content-Security-Policy, its script-src must contain 'wasm-unsafe-eval'" +
      " (in an extension: content_security_policy.extension_pages)"
    : "";
  return new CrabletError(
    { kind: "internal", message: `the WebAssembly module could not be loaded: ${messageOf(thrown)}${hint}` },
    { cause: thrown },
  );
}

function isCompileError(thrown: unknown): boolean {
  // Chromium reports a policy as CompileError, and Firefox as an EvalError of its own kind.
  return (
    thrown instanceof Error && (thrown.name === "CompileError" || /wasm|Content.Security.Policy/i.test(thrown.message))
  );
}
