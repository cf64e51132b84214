// Who the client of `client.mjs` is in the scenarios about authorization: what the suite's context says.

/** The option `auth` of `mcp.http()` for a scenario; `undefined` where it is not about authorization. */
export function authOf(scenario, context) {
  if (!scenario.startsWith("auth/")) return undefined;
  const { client_id: id, client_secret: secret, private_key_pem: pem, signing_algorithm: algorithm } = context;
  const client = id && { id, ...(secret && { secret }), ...(pem && { privateKey: { pem, algorithm } }) };
  const assertion = context.valid_jwt ?? context.idp_id_token;
  return {
    consent: { redirectUrl: "http://localhost:3000/callback", authorize: followRedirect },
    clientName: "crablet conformance",
    clientMetadataUrl: "https://conformance-test.local/client-metadata.json",
    ...(client && { client }),
    ...(scenario.startsWith("auth/client-credentials") && { grant: "client-credentials" }),
    ...(assertion && { assertion: () => assertion }),
    ...(context.idp_token_endpoint && {
      identityProvider: { tokenEndpoint: context.idp_token_endpoint, clientId: context.idp_client_id },
    }),
  };
}

/** Plays the person: opens the page, which sends it straight back. */
async function followRedirect(url, { signal }) {
  const { headers } = await fetch(url, { redirect: "manual", signal });
  const location = headers.get("location");
  if (location === null) throw new Error("the page sends nobody back");
  return location;
}
