import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  // crablet's module is in the script.
  build: { chunkSizeWarningLimit: 2_000 },
});
