// A server that answers with chunks as they are given, one write each.
import { createServer } from "node:http";

/** Writes up to this many chunks one turn of the event loop apart; finer cuttings would only take longer. */
const SPACED_CHUNKS = 40;

/**
 * @returns {Promise<{ url: string, requests: object[], answerWith: (answers: object[]) => void, close: () => Promise<void> }>}
 * `answerWith` sets the answers (`{ status, headers, chunks, isDropped }`) to the next requests, and forgets the bodies of those before
 */
export async function startReplayServer() {
  const requests = [];
  let answers = [];
  const server = createServer(async (request, response) => {
    const body = [];
    for await (const chunk of request) body.push(chunk);
    if (body.length > 0) requests.push(JSON.parse(Buffer.concat(body).toString()));
    const answer = answers.shift();
    if (answer === undefined) return response.writeHead(500).end("there is no further answer");
    response.socket.setNoDelay(true);
    response.writeHead(answer.status, answer.headers);
    for (const chunk of answer.chunks) {
      response.write(chunk);
      if (answer.chunks.length <= SPACED_CHUNKS) await new Promise((resolve) => setImmediate(resolve));
    }
    // Without the mark of the end, which tells the client that the connection dropped.
    if (answer.isDropped) return response.socket.end();
    return response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    answerWith(next) {
      requests.length = 0;
      answers = next;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
