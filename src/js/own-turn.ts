/**
 * Resolves when the module has returned: code of the caller is called after it. A window or a dialog that such code opens makes
 * Firefox run other tasks until it is there, and these would find the module in the middle of its work.
 *
 * @internal
 */
export function ownTurn(): Promise<void> {
  return Promise.resolve();
}
