// What the smoke conversations report when all went well. Beside them, since suites cannot import the package.

/** What the tool returns, so that the answer shows that it ran. */
export const FORECAST = "12 °C, light rain over Oslo 🌧";

/** What `ask` of ask.mjs resolves to. */
export const expectedAnswer =
  'tool-call get_weather {"city":"Oslo"}; answer quotes the forecast: true; streamed as given: true';

/** What `echoThroughMcp` of mcp.mjs resolves to. */
export const expectedEcho =
  "has echo: true; says: Echo: by hand; failed: false; agent called: everything__echo; answer quotes the echo: true";
