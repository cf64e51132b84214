/** The bytes of JavaScript and of the module, whose memory is an ArrayBuffer. Needs --expose-gc. */
export async function used() {
  for (let pass = 0; pass < 5; pass += 1) {
    globalThis.gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
