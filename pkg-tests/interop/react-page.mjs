// Components that use crablet/react, under React's strict mode. The test drives them through `window.react`.
import { Agent, tool } from "crablet";
import { useAgent, useSession } from "crablet/react";
import { scriptedModel } from "crablet/test";
import { Activity, createElement as h, StrictMode, useState } from "react";
import { createRoot, hydrateRoot } from "react-dom/client";
import { renderToString } from "react-dom/server";

const anything = { type: "object" };
const call = (callId, toolName, input = {}) => ({ type: "tool-call", callId, toolName, input });
const complaints = [];
const { error } = console;
console.error = (...words) => {
  complaints.push(words.join(" "));
  error(...words);
};

function View({ chat }) {
  Object.assign(window.react, { chat, renders: window.react.renders + 1 });
  const said = chat.messages.map(({ role, content }) => `${role}:${content.map(({ text }) => text ?? "*").join("")}`);
  return h("output", null, `${chat.status} ${said.join("|")}`);
}

function OfAgent({ agent, options }) {
  return h(View, { chat: useAgent(agent, options) });
}

function OfSession({ session, options }) {
  return h(View, { chat: useSession(session, options) });
}

/** Shows one of two components, each with the other's session: what one does the other sees. */
function Both({ session }) {
  const [isBoth, setBoth] = useState(true);
  window.react.setBoth = setBoth;
  return h("div", null, h(OfSession, { session }), isBoth && h(OfSession, { session }));
}

let root;
function mount(element) {
  root?.unmount();
  complaints.length = 0;
  Object.assign(window.react, { renders: 0, chat: undefined });
  root = createRoot(document.querySelector("main"));
  root.render(h(StrictMode, null, element));
}

const until = async (holds, what) => {
  const deadline = Date.now() + 20_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`never: ${what ?? holds}; now ${JSON.stringify(window.react.chat)}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};
const chatOf = () => window.react.chat ?? { status: "none", messages: [], pending: [], clientCalls: [] };
const shown = () => document.querySelector("main").textContent;

window.react = {
  renders: 0,
  chat: undefined,
  scenarios: {
    async "streams an answer"() {
      let goOn;
      const held = new Promise((resolve) => {
        goOn = resolve;
      });
      const agent = new Agent({
        model: async function* () {
          yield "It ";
          await held;
          yield "rains.";
        },
      });
      mount(h(OfAgent, { agent }));
      await until(() => chatOf().status === "idle");
      const first = chatOf().send;
      chatOf().send("Umbrella?");
      await until(() => chatOf().streaming?.content[0]?.text === "It ");
      const running = chatOf().status;
      goOn();
      await until(() => shown() === "idle user:Umbrella?|assistant:It rains.");
      return { running, isStable: chatOf().send === first, complaints };
    },

    async "asks for approvals"() {
      const ran = [];
      const execute = ({ n }) => ran.push(n);
      const remove = tool({ description: "r", input: anything, needsApproval: true, execute });
      const model = scriptedModel([[call("a", "remove", { n: 1 }), call("b", "remove", { n: 2 })], "done"]);
      mount(h(OfAgent, { agent: () => new Agent({ model, tools: { remove } }) }));
      await until(() => chatOf().status === "idle");
      chatOf().send("go");
      await until(() => chatOf().status === "awaiting-approval");
      const asked = chatOf().pending.map(({ callId }) => callId);
      chatOf().approve("a");
      chatOf().approve("b", false, "no");
      await until(() => chatOf().status === "idle");
      return { asked, ran, last: chatOf().messages.at(-1).content[0].text, complaints };
    },

    async "performs client-side tools once, and those of a saved session"() {
      const performed = [];
      const locate = tool({ description: "l", input: anything });
      const clientTools = {
        locate: async (input, { callId, signal }) => {
          performed.push([callId, input, signal.aborted]);
          if (input.fails) throw new Error("no GPS here");
          return { city: "Oslo" };
        },
      };
      const answer = ({ messages }) =>
        messages
          .at(-1)
          .content.map(({ content: [{ text }] }) => text)
          .join();
      const model = scriptedModel([[call("a", "locate"), call("b", "locate", { fails: true })], answer]);
      mount(h(OfAgent, { agent: new Agent({ model, tools: { locate } }), options: { clientTools } }));
      await until(() => chatOf().status === "idle");
      chatOf().send("Where am I?");
      await until(() => chatOf().messages.length === 4);
      const text = chatOf().messages.at(-1).content[0].text;

      const left = new Agent({
        model: scriptedModel([[call("c", "locate", { again: true })]]),
        tools: { locate },
      }).session();
      await left.send("Where?").result;
      const agent = new Agent({ model: scriptedModel([answer]), tools: { locate } });
      mount(h(OfAgent, { agent, options: { clientTools, saved: left.toJSON() } }));
      await until(() => chatOf().messages.length === 4);
      return { text, performed, restored: chatOf().messages.at(-1).content[0].text, complaints };
    },

    async "goes on with a saved approval"() {
      const remove = tool({ description: "r", input: anything, needsApproval: true, execute: () => "gone" });
      const left = new Agent({ model: scriptedModel([[call("a", "remove")]]), tools: { remove } }).session();
      await left.send("go").result;
      const agent = new Agent({ model: scriptedModel(["done"]), tools: { remove } });
      mount(h(OfAgent, { agent, options: { saved: left.toJSON() } }));
      await until(() => chatOf().pending.length === 1);
      const { status } = chatOf();
      chatOf().approve("a");
      await until(() => chatOf().status === "idle");
      return { status, last: chatOf().messages.at(-1).content[0].text, complaints };
    },

    async "stops, and aborts when the component goes"() {
      const aborted = [];
      const agent = new Agent({
        model: async function* (_request, { signal }) {
          const index = aborted.push(false) - 1;
          yield "words";
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          aborted[index] = true;
        },
      });
      mount(h(OfAgent, { agent }));
      await until(() => chatOf().status === "idle");
      chatOf().send("go");
      await until(() => chatOf().streaming !== undefined);
      chatOf().stop();
      await until(() => chatOf().status === "idle" && aborted[0] === true);
      chatOf().send("go");
      await until(() => chatOf().streaming !== undefined);
      mount(h("i", null, "gone"));
      await until(() => aborted[1] === true, "the run of the component that went is aborted");
      return { aborted, complaints };
    },

    async "another agent begins another conversation, and two components share a session"() {
      const [one, two] = ["one", "two"].map((text) => new Agent({ model: scriptedModel([text]) }));
      mount(h(OfAgent, { agent: one }));
      await until(() => chatOf().status === "idle");
      chatOf().send("a");
      await until(() => shown() === "idle user:a|assistant:one");
      root.render(h(StrictMode, null, h(OfAgent, { agent: two })));
      await until(() => shown() === "idle ");
      chatOf().send("b");
      await until(() => shown() === "idle user:b|assistant:two");

      const session = new Agent({ model: scriptedModel(["three", "four"]) }).session();
      mount(h(Both, { session }));
      await until(() => shown() === "idle idle ");
      chatOf().send("c");
      await until(() => shown() === "idle user:c|assistant:threeidle user:c|assistant:three");
      window.react.setBoth(false);
      await until(() => shown() === "idle user:c|assistant:three");
      chatOf().send("d");
      await until(() => shown() === "idle user:c|assistant:three|user:d|assistant:four");
      return { complaints };
    },

    async "goes on when it is shown again after it was hidden"() {
      let made = 0;
      const agent = () => {
        made += 1;
        return new Agent({ model: ({ messages }) => [`answer ${messages.length}`] });
      };
      const shownAs = (mode) => h(StrictMode, null, h(Activity, { mode }, h(OfAgent, { agent })));
      mount(h(Activity, { mode: "visible" }, h(OfAgent, { agent })));
      await until(() => chatOf().status === "idle");
      chatOf().send("a");
      await until(() => shown() === "idle user:a|assistant:answer 1");
      const before = chatOf().session;
      root.render(shownAs("hidden"));
      await until(() => document.querySelector("output").style.display === "none");
      await new Promise((resolve) => setTimeout(resolve, 50));
      const first = made;
      root.render(shownAs("visible"));
      await until(() => chatOf().session !== before && document.querySelector("output").style.display !== "none");
      chatOf().send("b");
      await until(() => shown() === "idle user:a|assistant:answer 1|user:b|assistant:answer 3");
      return { isMadeAgain: made > first, complaints };
    },

    async "renders on a server and is hydrated"() {
      const left = new Agent({ model: scriptedModel(["hello"]) }).session();
      await left.send("hi").result;
      const saved = left.toJSON();
      const element = () =>
        h(StrictMode, null, h(OfAgent, { agent: new Agent({ model: scriptedModel(["more"]) }), options: { saved } }));
      root?.unmount();
      complaints.length = 0;
      const html = renderToString(element());
      window.react.chat = undefined;
      const main = document.querySelector("main");
      main.innerHTML = html;
      root = hydrateRoot(main, element(), { onRecoverableError: (thrown) => complaints.push(String(thrown)) });
      await until(() => chatOf().status === "idle");
      chatOf().send("and?");
      await until(() => shown().endsWith("assistant:more"));
      root.unmount();
      root = undefined;
      return { html, complaints };
    },
  },
};
