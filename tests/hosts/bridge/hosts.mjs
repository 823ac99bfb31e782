// Many MCP hosts in one process, on the official TypeScript SDKs, for tests: `node hosts.mjs URL`.
//
// Each line of stdin is for one host, by its number:
//   {"host": N, "sdk": "v1" | "v2", "mode": "auto" | "legacy", "elicitation": {...} | null, "token": T}  start it
//   {"host": N, "call": TOOL, "arguments": {...}}            have it call a tool
//   {"host": N, "answer": {"action": ...}}                   what the person says to what was asked
// Each line of stdout is from one: `connected`, `ask` (the server asks the person), `result` or `failed`.

import { createInterface } from 'node:readline';

import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const server = new URL(process.argv[2]);
const hosts = new Map();

const tell = (host, event, values) => process.stdout.write(JSON.stringify({ host, event, ...values }) + '\n');

async function start({ host, sdk, mode, elicitation, token }) {
  const self = { answered: null, client: null };
  hosts.set(host, self);
  const ask = ({ params }) => new Promise((resolve) => {
    self.answered = resolve;
    tell(host, 'ask', { params });
  });
  const info = { name: 'confirmhub-host', version: '1' };
  const options = { capabilities: elicitation ? { elicitation } : {} };
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  let transport;
  if (sdk === 'v1') {
    self.client = new ClientV1(info, options);
    if (elicitation) self.client.setRequestHandler(ElicitRequestSchema, ask);
    transport = new TransportV1(server, { requestInit });
  } else {
    self.client = new ClientV2(info, { ...options, versionNegotiation: { mode } });
    if (elicitation) self.client.setRequestHandler('elicitation/create', ask);
    transport = new TransportV2(server, { requestInit });
  }
  await self.client.connect(transport);
  const version = sdk === 'v1' ? transport.protocolVersion : self.client.getNegotiatedProtocolVersion();
  tell(host, 'connected', { version });
}

async function call({ host, call: name, arguments: values }) {
  const result = await hosts.get(host).client.callTool({ name, arguments: values });
  const text = result.content.filter((block) => block.type === 'text').map((block) => block.text).join('\n');
  tell(host, 'result', { text, refused: result.isError ?? false, data: result.structuredContent ?? null });
}

const failed = ({ host }) => (error) => tell(host, 'failed', { message: `${error.name}: ${error.message}` });

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  if (command.sdk) start(command).catch(failed(command));
  else if (command.call) call(command).catch(failed(command));
  else hosts.get(command.host).answered(command.answer);
}
for (const { client } of hosts.values()) await client.close();
