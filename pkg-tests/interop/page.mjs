import "./chat-page.mjs";
import "./react-page.mjs";
