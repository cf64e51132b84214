import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  // crablet/react uses the React of the page, wherever crablet itself is installed.
  resolve: { dedupe: ["react"] },
  // crablet's module is in the script.
  build: { chunkSizeWarningLimit: 2_000 },
});
