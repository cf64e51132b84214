/** @internal Where `crablet-shim serve` listens unless told otherwise. */
export const SHIM_URL = "ws://127.0.0.1:6735";
