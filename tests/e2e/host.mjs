// An MCP host on the official TypeScript SDK: `node host.mjs URL url|none`. It says and takes the same
// lines as `python_host.py`, where they are described.
//
// With `url` it speaks the newest protocol that the server has and opens pages that a server names. With
// `none` it is what the SDK makes by default: a host of the older protocol, which declares nothing.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const [server, elicitation] = process.argv.slice(2);

const tell = (event, values) => process.stdout.write(JSON.stringify({ event, ...values }) + '\n');

// Where the browser brings the answer of the authorization server: RFC 8252 section 7.3.
const answers = [];
let awaited = null;
const loopback = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://127.0.0.1');
  const found = pathname === '/callback';
  response.writeHead(found ? 200 : 404, { 'Content-Type': 'text/plain', Connection: 'close' });
  response.end(found ? 'Signed in.' : 'Nothing here.');
  if (!found) return;
  if (awaited) awaited(searchParams);
  else answers.push(searchParams);
});
loopback.listen(0, '127.0.0.1');
await once(loopback, 'listening');
const redirectUrl = `http://127.0.0.1:${loopback.address().port}/callback`;

const answer = () => new Promise((resolve) => {
  if (answers.length) resolve(answers.shift());
  else awaited = (found) => { awaited = null; resolve(found); };
});

// Keeps the registration and the tokens for as long as this program runs. The SDK leaves `state` to us.
const kept = {};
const authProvider = {
  redirectUrl,
  clientMetadata: {
    client_name: 'End-to-end host (TypeScript)',
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  state: () => (kept.state = randomUUID()),
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  redirectToAuthorization: (url) => tell('authorize', { url: url.href }),
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  discoveryState: () => kept.discovery,
  saveDiscoveryState: (discovery) => { kept.discovery = discovery; },
};

// Does `attempt`, after a sign-in where the server asks for one.
async function signedIn(transport, attempt) {
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
  }
  const found = await answer();
  if (found.get('state') !== kept.state) throw new Error('The answer is to another question.');
  await transport().finishAuth(found);
  return attempt();
}

const opensPages = elicitation === 'url';
const client = new Client({ name: 'confirmhub-e2e', version: '1' }, opensPages
  ? { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode: 'auto' } }
  : {});
if (opensPages) {
  // The person agrees to open the page. What they decide there, this host never learns.
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    tell('ask', { url: params.url, message: params.message });
    return { action: 'accept' };
  });
}

let transport;
await signedIn(() => transport, () => {
  transport = new StreamableHTTPClientTransport(new URL(server), { authProvider }); // one starts once
  return client.connect(transport);
});
const { tools } = await client.listTools();
tell('connected', { tools: tools.map((tool) => tool.name), version: client.getNegotiatedProtocolVersion() });

for await (const line of createInterface({ input: process.stdin })) {
  const { call, arguments: values } = JSON.parse(line);
  try {
    const result = await signedIn(() => transport, () => client.callTool({ name: call, arguments: values }));
    const text = result.content.filter((block) => block.type === 'text').map((block) => block.text).join('\n');
    tell('result', { text, refused: result.isError ?? false, data: result.structuredContent ?? null });
  } catch (error) {
    tell('failed', { message: `${error.name}: ${error.message}` });
  }
}
await client.close();
loopback.close();
