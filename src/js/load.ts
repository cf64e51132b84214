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
  const given = compiled ?? (await source) ?? (await defaultModule());
  const made = await instanceOf(given, imports);
  const isPair = "instance" in made;
  compiled = isPair ? made.module : (given as WebAssembly.Module);
  start(isPair ? made.instance : made);
  life.onEnd(() => {
    loading = undefined;
  });
  return { ...bindings, life };
}

/** The instance, and the module if that was compiled on the way. */
async function instanceOf(
  given: WasmSource,
  imports: WebAssembly.Imports,
): Promise<WebAssembly.Instance | WebAssembly.WebAssemblyInstantiatedSource> {
  const source = typeof given === "string" || given instanceof URL ? await fetch(given) : given;
  // A module gives an instance, bytes give both.
  if (!(source instanceof Response)) return WebAssembly.instantiate(source as WebAssembly.Module, imports);
  const isTyped = source.headers.get("content-type") === "application/wasm";
  // Without its media type a module cannot be compiled while it arrives; one that could not be got is told of by the platform.
  if ((isTyped || !source.ok) && "instantiateStreaming" in WebAssembly)
    return WebAssembly.instantiateStreaming(source, imports);
  return WebAssembly.instantiate(await source.arrayBuffer(), imports);
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
