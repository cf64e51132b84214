import "./chat-page.mjs";
