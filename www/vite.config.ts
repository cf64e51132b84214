import { defineConfig } from "vitest/config";

export default defineConfig({
  // Relative addresses, so that the built page works from any folder of any host.
  base: "./",
  build: {
    target: "es2022",
    outDir: "../dist/page",
    emptyOutDir: true,
    rollupOptions: { input: ["index.html", "oauth-callback.html"] },
    // Data URLs of scripts and fonts are against the page's content security policy.
    assetsInlineLimit: 0,
    // crablet's module is in the script, so that the page needs no other file.
    chunkSizeWarningLimit: 1_250,
  },
  test: {
    // What runs beside the page has its own tests, which need nothing but Node.
    include: ["src/**/*.test.{ts,tsx}"],
  },
});
