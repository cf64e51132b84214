/** @internal Tells somebody who only looks: what the function throws, at once or later, goes to `console.error` and nowhere else. */
export function notify(name: string, tell: () => unknown): void {
  const report = (thrown: unknown): void => console.error(`crablet: ${name} failed`, thrown);
  try {
    const told = tell();
    if (told instanceof Promise) told.catch(report);
  } catch (thrown) {
    report(thrown);
  }
}
