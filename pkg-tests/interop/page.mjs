import "./chat-page.mjs";
import "./react-page.mjs";
import "./local-page.mjs";
