/** How long a body may take to come. */
const BODY_LIMIT_MS = 30_000;

/** The body of a request as text, or the status for one that is too long, too slow, cut off or no UTF-8. */
export async function readBody(request: Request, maxBytes: number): Promise<string | number> {
  // A body that is too long by its own account is not read at all.
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) return 413;
  const reader = request.body?.getReader();
  if (reader === undefined) return "";
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tooSlow = new Promise<"late">((late) => {
    timer = setTimeout(late, BODY_LIMIT_MS, "late");
  });
  try {
    let text = "";
    let bytes = 0;
    for (;;) {
      const read = await Promise.race([reader.read(), tooSlow]);
      if (read === "late") return stop(reader, 408);
      if (read.done) return text + decoder.decode();
      bytes += read.value.byteLength;
      if (bytes > maxBytes) return stop(reader, 413);
      text += decoder.decode(read.value, { stream: true });
    }
  } catch {
    return stop(reader, 400);
  } finally {
    clearTimeout(timer);
  }
}

/** Reads no further. */
function stop(reader: ReadableStreamDefaultReader<Uint8Array>, status: number): number {
  reader.cancel().catch(() => {});
  return status;
}
