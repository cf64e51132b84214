// React's development build: it is the one that checks.
export default {
  mode: "development",
  define: { "process.env.NODE_ENV": '"development"' },
  build: { minify: false, modulePreload: false },
};
