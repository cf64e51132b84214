// The page that an authorization server sends people back to: it tells the page that asked, and closes.
import { finishPopup } from "crablet/oauth";

finishPopup();
