// One host, on the official SDK, over instances that it reaches in turns: `node instances.mjs NAME TOKEN ADDRESS ...`.
//
// It asks for a confirmation, looks at it and takes it back, each at another instance than the request before.
// Each line of stdout is a request and who answered it, or what a tool said.

import { request } from 'node:http';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [name, token, ...addresses] = process.argv.slice(2);
const pool = addresses.map((address, number) => ({ address, name: `instance-${number + 1}` }));
let turn = 0;

// Not by fetch, which sets Host itself: an instance serves under the name that all of them share.
const send = (target, init) => new Promise((resolve, reject) => {
  const [hostname, port] = target.address.split(':');
  const headers = { ...Object.fromEntries(new Headers(init.headers)), host: name };
  const asked = request({ hostname, port, path: '/mcp', method: init.method ?? 'GET', headers }, (answer) => {
    const chunks = [];
    answer.on('data', (chunk) => chunks.push(chunk));
    answer.on('end', () => {
      const { statusCode: status } = answer;
      const body = status === 202 ? null : Buffer.concat(chunks);
      resolve(new Response(body, { status, headers: { 'content-type': answer.headers['content-type'] ?? '' } }));
    });
  });
  asked.on('error', reject);
  asked.end(init.body);
});

const balancer = async (_, init) => {
  if (init.method !== 'POST') return send(pool[0], init); // the SDK's optional stream, which there is none of
  const target = pool[turn++ % pool.length];
  const answer = await send(target, init);
  console.log(`${JSON.parse(init.body).method} -> ${target.name}: ${answer.status}`);
  return answer;
};

const client = new Client({ name: 'host', version: '1.0.0' });
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL('http://balancer.invalid/mcp'), { fetch: balancer, requestInit }));
const call = async (tool, values) => (await client.callTool({ name: tool, arguments: values })).structuredContent;
const asked = await call('request_confirmation', { action: 'rooms.book', arguments: { room: 'huddle-2' } });
console.log(`result: ${asked.status}`);
const seen = await call('get_confirmation', { confirmation_id: asked.confirmation_id });
console.log(`result: ${seen.status} ${seen.arguments}`);
const closed = await call('cancel_confirmation', { confirmation_id: asked.confirmation_id });
console.log(`result: ${closed.message}`);
await client.close();
