// Offering tools through the shim, at the socket: what is sent to whom, and when. The suite `expose` has the real shim.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { CrabletError } from "crablet";
import { documentTools, expose, serverTool } from "crablet/server";

const SECRET = Buffer.alloc(32, 2);
const TOKEN = `AQEBAQEBAQEB.${SECRET.toString("base64url")}`;
const annotations = { readOnlyHint: true };
const anything = { type: "object", properties: {} };
const said = (words) => serverTool({ description: "x", input: anything, annotations, execute: () => words });

/** The shim's end of the sockets that are opened, which a test plays. */
function shimEnd() {
  const opened = [];
  let wake = () => undefined;
  class ScriptedSocket {
    constructor(url, protocols) {
      Object.assign(this, { url, protocols, readyState: 1, sent: [] });
      opened.push(this);
      wake();
    }
    send(bytes) {
      const view = new DataView(bytes.buffer);
      const payload = Buffer.from(bytes.subarray(17)).toString();
      this.sent.push({ kind: view.getUint8(0), number: Number(view.getBigUint64(1)), payload });
      wake();
    }
    close() {
      this.readyState = 3;
    }
  }
  const until = async (find) => {
    for (;;) {
      const found = find();
      if (found) return found;
      await new Promise((resolve) => {
        wake = resolve;
      });
    }
  };
  const give = (socket, kind, payload, number = 0) => {
    const text = Buffer.from(payload);
    const bytes = new Uint8Array(17 + text.length);
    const view = new DataView(bytes.buffer);
    view.setUint8(0, kind);
    view.setBigUint64(1, BigInt(number));
    view.setBigUint64(9, BigInt(socket.sent.filter((frame) => frame.number > 0).length));
    bytes.set(text, 17);
    socket.onmessage({ data: bytes.buffer });
  };
  return {
    WebSocket: ScriptedSocket,
    socket: (index = 0) => until(() => opened[index]),
    sent: (socket, isWanted) => until(() => socket.sent.find(isWanted)),
    give,
    /** Proves, and says hello. */
    async attach(index = 0) {
      const socket = await this.socket(index);
      const nonce = socket.protocols[1].split(".")[3];
      give(socket, 1, createHmac("sha256", SECRET).update(`server|${nonce}`).digest("base64url"));
      const { payload } = await this.sent(socket, ({ kind }) => kind === 2);
      give(socket, 3, JSON.stringify({ resume: "r", idPrefix: "1-", next: 1, graceMs: 60_000 }));
      return { socket, attach: JSON.parse(payload) };
    },
  };
}

test("a proof is for this address, origin and purpose, and holds no token", async () => {
  const end = shimEnd();
  const exposed = expose(
    { a: said("a") },
    { shim: { token: TOKEN, url: "ws://127.0.0.1:7000/", WebSocket: end.WebSocket } },
  );
  const socket = await end.socket();
  assert.equal(socket.url, "ws://127.0.0.1:7000/expose");
  assert.equal(socket.protocols[0], "crablet.v1");
  const [, , keyId, nonce, at, code] = socket.protocols[1].split(".");
  assert.equal(keyId, "AQEBAQEBAQEB");
  const text = `client|${nonce}|${at}|127.0.0.1:7000|${globalThis.origin ?? ""}|`;
  assert.equal(code, createHmac("sha256", SECRET).update(text).digest("base64url"));
  assert.ok(!socket.protocols[1].includes(SECRET.toString("base64url")));
  await exposed.close();
  assert.equal(exposed.state.status, "closed");
});

test("a program that cannot prove that it is the shim gets nothing", async () => {
  const end = shimEnd();
  const states = [];
  const closed = new Promise((resolve) => {
    const onState = (state) => {
      states.push(state.status);
      if (state.status === "closed") resolve(state);
    };
    expose({ a: said("a") }, { shim: { token: TOKEN, WebSocket: end.WebSocket }, onState });
  });
  const socket = await end.socket();
  end.give(socket, 1, createHmac("sha256", Buffer.alloc(32, 3)).update("server|x").digest("base64url"));
  const { error } = await closed;
  assert.equal(error.kind, "auth");
  assert.deepEqual(socket.sent, []);
  assert.ok(!states.includes("connected"));
});

test("tools are served, and what became of them is told", async () => {
  const end = shimEnd();
  let told;
  const state = new Promise((resolve) => {
    told = (seen) => seen.tools.length > 0 && resolve(seen);
  });
  const large = serverTool({ description: "x", input: anything, execute: () => "x".repeat(17 * 1024 * 1024) });
  const shim = { token: TOKEN, WebSocket: end.WebSocket };
  const exposed = expose({ a: said("a"), large }, { shim, name: "page", onState: told });
  const { socket, attach } = await end.attach();
  assert.deepEqual(attach, { continues: false });
  let last = 0;
  const ask = async (method, params) => {
    last += 1;
    const id = last;
    end.give(socket, 4, JSON.stringify({ jsonrpc: "2.0", id, method, params }), id);
    const { payload } = await end.sent(socket, ({ kind, payload }) => kind === 4 && JSON.parse(payload).id === id);
    return JSON.parse(payload);
  };
  const hello = await ask("initialize", { protocolVersion: "2025-11-25", capabilities: {} });
  assert.deepEqual(hello.result.capabilities, { tools: { listChanged: true }, logging: {} });
  const called = await ask("tools/call", { name: "a", arguments: {} });
  assert.equal(called.result.content[0].text, "a");
  const tooLarge = await ask("tools/call", { name: "large", arguments: {} });
  assert.match(tooLarge.error.message, /larger than 16 MiB/);

  const tools = [{ name: "a", offeredAs: "page_a" }];
  end.give(
    socket,
    4,
    JSON.stringify({ jsonrpc: "2.0", method: "notifications/crablet/exposed", params: { tools } }),
    4,
  );
  assert.deepEqual((await state).tools, tools);
  assert.equal(exposed.state.status, "connected");
  exposed.update([
    { name: "b", description: "In the shape of WebMCP", execute: () => ({ content: [{ type: "text", text: "b" }] }) },
  ]);
  await end.sent(socket, ({ payload }) => payload.includes("tools/list_changed"));
  last = 4;
  const listed = await ask("tools/list", {});
  assert.deepEqual(
    listed.result.tools.map(({ name }) => name),
    ["b"],
  );
  assert.equal((await ask("tools/call", { name: "b", arguments: {} })).result.content[0].text, "b");
  await exposed.close();
  assert.equal(socket.sent.at(-1).kind, 8, "the shim is told at once");
});

test("a socket that breaks is opened again, and an answer that was not seen is sent again", async () => {
  const end = shimEnd();
  const exposed = expose({ a: said("a") }, { shim: { token: TOKEN, WebSocket: end.WebSocket } });
  const { socket } = await end.attach();
  end.give(socket, 4, JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }), 1);
  await end.sent(socket, ({ kind }) => kind === 4);
  socket.onclose();
  assert.equal(exposed.state.status, "waiting");
  const second = await end.attach(1);
  assert.deepEqual(second.attach, { resume: "r", continues: true });
  const again = await end.sent(second.socket, ({ kind }) => kind === 4);
  assert.deepEqual([again.number, JSON.parse(again.payload)], [1, { jsonrpc: "2.0", id: 1, result: {} }]);
  end.give(second.socket, 9, "the token was revoked");
  assert.deepEqual([exposed.state.status, exposed.state.error.kind], ["closed", "auth"]);
});

test("what cannot work is refused at once, without repeating a token", () => {
  const { WebSocket } = shimEnd();
  const attempts = [
    { token: "secret-that-is-none", WebSocket },
    { token: "", WebSocket },
    { token: TOKEN, url: "ws://evil.example:6735", WebSocket },
    { token: TOKEN, url: "ws://127.0.0.1.evil.example:6735", WebSocket },
    { token: TOKEN, url: "http://127.0.0.1:6735", WebSocket },
  ];
  for (const shim of attempts)
    assert.throws(
      () => expose({ a: said("a") }, { shim }),
      (error) => CrabletError.is(error) && error.kind === "invalid-input" && !error.message.includes("secret-that"),
    );
  assert.throws(() => expose({ "a b": said("a") }, { shim: { token: TOKEN, WebSocket } }), /no name of a tool/);
});

test("tools of document.modelContext come and go, and there are none without it", async () => {
  assert.deepEqual(await documentTools(undefined).tools(), []);
  const target = new EventTarget();
  const calls = [];
  let registered = [{ name: "a", description: "x", annotations }];
  const context = {
    getTools: async () => registered,
    executeTool: async (tool, input) => {
      calls.push([tool.name, input]);
      return JSON.stringify({ got: input });
    },
    addEventListener: (type, listener) => target.addEventListener(type, listener),
    removeEventListener: (type, listener) => target.removeEventListener(type, listener),
  };
  const source = documentTools(context);
  const [tool] = await source.tools();
  assert.deepEqual(tool.annotations, annotations);
  assert.deepEqual(await tool.execute({ q: 1 }, { signal: new AbortController().signal }), { got: { q: 1 } });
  assert.deepEqual(calls, [["a", { q: 1 }]]);
  let changes = 0;
  const stop = source.subscribe(() => {
    changes += 1;
  });
  registered = [];
  target.dispatchEvent(new Event("toolchange"));
  stop();
  target.dispatchEvent(new Event("toolchange"));
  assert.equal(changes, 1);
  assert.deepEqual(await source.tools(), []);
});
