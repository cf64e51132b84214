import { render } from "preact";
import { App } from "./app";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/chat.css";
import "./styles/markdown.css";
import "./styles/tool-card.css";
import "./styles/composer.css";
import "./styles/panel.css";
import "./styles/elicitation.css";
import "./styles/inspector.css";

const root = document.getElementById("app");
if (root) render(<App />, root);
