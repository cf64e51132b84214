// A page that talks to an agent service over NATS's WebSocket: it shows the events of a session in their order, and after it was
// loaded anew it shows those that it had and reads on behind them.
import { jetstream } from "@nats-io/jetstream";
import { wsconnect } from "@nats-io/nats-core";
import { agentClient, RemoteTranscript } from "crablet/agent-service";

const list = document.querySelector("ol");
const transcript = new RemoteTranscript();
const seen = JSON.parse(sessionStorage.getItem("seen") ?? "[]");

function show(placed) {
  const line = document.createElement("li");
  line.dataset.type = placed.event.type;
  line.textContent = JSON.stringify(placed);
  list.append(line);
  transcript.apply(placed.event);
}

async function open(servers, name, id) {
  const connection = await wsconnect({ servers });
  const session = agentClient({ connection, jetstream: jetstream(connection), name }).session(id);
  seen.forEach(show);
  const after = seen.at(-1)?.cursor;
  (async () => {
    for await (const placed of session.events(after === undefined ? {} : { after })) {
      seen.push(placed);
      sessionStorage.setItem("seen", JSON.stringify(seen));
      show(placed);
    }
  })();
  return session;
}

let session;

/** What the test does with the page. */
window.talk = {
  open: async (...place) => {
    session = await open(...place);
    return seen.length;
  },
  prompt: (input) => session.prompt(input),
  steer: (input) => session.steer(input),
  abort: (reason) => session.abort(reason),
  messages: () => transcript.messages,
};
