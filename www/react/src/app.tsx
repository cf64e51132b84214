import { type FormEvent, useEffect, useState } from "react";
import { type ChatSession, type Connection, openSession } from "./agent.js";
import { Chat } from "./chat.js";

/** Gone with the tab. A key in `localStorage` would be there for every script that this origin will ever run. */
const PLACE = "connection";

export function App() {
  const [connection, setConnection] = useState(readConnection);
  const [session, setSession] = useState<ChatSession>();
  const [problem, setProblem] = useState<string>();

  useEffect(() => {
    if (connection === undefined) return;
    // Strict mode runs effects twice: of two sessions the second one would be refused by the store.
    let isWanted = true;
    void Promise.resolve().then(async () => {
      if (!isWanted) return;
      try {
        setSession(await openSession(connection));
      } catch (error) {
        setProblem(error instanceof Error ? error.message : String(error));
      }
    });
    return () => {
      isWanted = false;
    };
  }, [connection]);

  function connect(wanted: Connection) {
    sessionStorage.setItem(PLACE, JSON.stringify(wanted));
    setConnection(wanted);
  }

  return (
    <>
      <header>
        <h1>crablet in React</h1>
      </header>
      {problem !== undefined && <p role="alert">{problem}</p>}
      {connection === undefined ? <Connect onConnect={connect} /> : session && <Chat session={session} />}
    </>
  );
}

function readConnection(): Connection | undefined {
  const saved = sessionStorage.getItem(PLACE);
  return saved === null ? undefined : (JSON.parse(saved) as Connection);
}

function Connect({ onConnect }: { readonly onConnect: (connection: Connection) => void }) {
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const field = (name: string) => String(form.get(name) ?? "").trim();
    onConnect({ baseUrl: field("address"), model: field("model"), key: field("key") });
  }

  return (
    <main>
      <form className="connect" onSubmit={submit}>
        <label>
          Address of a server that speaks OpenAI's protocol
          <input name="address" type="url" defaultValue="http://localhost:11434/v1" required />
        </label>
        <label>
          Name of the model
          <input name="model" defaultValue="qwen3" required />
        </label>
        <label>
          Key, where it wants one
          <input name="key" type="password" autoComplete="off" />
        </label>
        <button type="submit">Begin</button>
      </form>
    </main>
  );
}
