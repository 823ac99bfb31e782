// MCP hosts on the official TypeScript SDKs, the first and the second, as one program. It takes and says the
// same lines as `python_host.py`, where they are described.

import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';

import * as second from '@modelcontextprotocol/client';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const sdks = {
  first: { Client, StreamableHTTPClientTransport, UnauthorizedError, options: {} },
  second: { ...second, options: { versionNegotiation: { mode: 'auto' } } },
};

let requests = [];
let notes = [];
let gate = null;

const tell = (event, values) => {
  process.stdout.write(JSON.stringify({ event, requests, notes, ...values }) + '\n');
  requests = [];
  notes = [];
};

const said = (error) => ({ name: error.constructor.name, message: error.message });

// What a request is about, beside its method and path.
const matter = (body) => {
  if (!body) return '';
  const text = String(body);
  if (text.startsWith('{')) return JSON.parse(text).method ?? '';
  return new URLSearchParams(text).get('grant_type') ?? '';
};

async function listeningFetch(input, init = {}) {
  const method = init.method ?? 'GET';
  const { pathname } = new URL(String(input));
  const response = await fetch(input, init);
  // The optional stream opens in the background, whenever that is.
  if (method === 'GET' && pathname === '/mcp') return response;
  const about = matter(init.body);
  const problem = response.status >= 400 && about.match(/_/) ? (await response.clone().json()).error : '';
  requests.push([method, pathname, about, response.status, problem].filter(Boolean).join(' '));
  // Calls that are made together find together that their token has expired.
  if (gate && response.status === 401) {
    gate.left -= 1;
    if (gate.left === 0) gate.open();
    await gate.opened;
  }
  return response;
}

const close = (count) => {
  gate = { left: count };
  gate.opened = new Promise((resolve) => { gate.open = resolve; });
};

class Host {
  constructor({ sdk, server, redirect, document, name, keeps_refresh_token, invalidates, resource }) {
    this.sdk = sdks[sdk];
    this.server = new URL(server);
    const kept = (this.kept = {});
    // Keeps the registration and the tokens for as long as this host runs. The SDKs leave `state` to us.
    this.authProvider = {
      redirectUrl: redirect,
      clientMetadataUrl: document ?? undefined,
      clientMetadata: {
        client_name: name,
        redirect_uris: [redirect],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      },
      state: () => (kept.state = randomUUID()),
      clientInformation: () => kept.client,
      saveClientInformation: (client) => { kept.client = client; },
      tokens: () => kept.tokens,
      saveTokens: ({ refresh_token, ...tokens }) => {
        kept.tokens = keeps_refresh_token ? { refresh_token, ...tokens } : tokens;
      },
      redirectToAuthorization: (url) => { kept.url = url.href; },
      saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
      codeVerifier: () => kept.verifier,
    };
    if (sdk === 'second') {
      this.authProvider.discoveryState = () => kept.discovery;
      this.authProvider.saveDiscoveryState = (discovery) => { kept.discovery = discovery; };
    }
    if (invalidates) {
      this.authProvider.invalidateCredentials = (what) => {
        notes.push(`invalidated ${what}`);
        if (what === 'all' || what === 'client') kept.client = undefined;
        if (what === 'all' || what === 'tokens') kept.tokens = undefined;
      };
    }
    if (resource) this.authProvider.validateResourceURL = () => new URL(resource);
    this.client = new this.sdk.Client({ name, version: '1' }, this.sdk.options);
  }

  transport() {
    this.line = new this.sdk.StreamableHTTPClientTransport(this.server, {
      authProvider: this.authProvider,
      fetch: listeningFetch,
    });
    return this.line;
  }

  // Does it, or has a person asked first.
  async attempt(what) {
    this.pending = null;
    try {
      tell(...(await what()));
    } catch (error) {
      if (error instanceof this.sdk.UnauthorizedError && this.kept.url) {
        this.pending = what;
        tell('authorize', { url: this.kept.url, verifier: this.kept.verifier });
        this.kept.url = null;
      } else {
        tell('failed', said(error));
      }
    }
  }

  connect() {
    return this.attempt(async () => {
      await this.client.connect(this.transport()); // a transport starts once
      return ['connected', {}];
    });
  }

  call({ tool, arguments: values, times = 1 }) {
    return this.attempt(async () => {
      if (times > 1) close(times);
      const calls = Array.from({ length: times }, () => this.client.callTool({ name: tool, arguments: values }));
      const settled = await Promise.allSettled(calls);
      gate = null;
      const failed = settled.find(({ status }) => status === 'rejected');
      if (failed) throw failed.reason;
      return ['results', { results: settled.map(({ value }) => value.structuredContent) }];
    });
  }

  async answer(query) {
    const found = new URLSearchParams(query);
    try {
      if (found.get('state') !== this.kept.state) throw new Error('The answer is to another question.');
      if (this.sdk === sdks.second) {
        await this.line.finishAuth(found);
      } else {
        // The first SDK takes the code alone: what else there is to see in the answer, it never sees.
        if (found.has('error')) throw new Error(`Refused: ${found.get('error')}`);
        await this.line.finishAuth(found.get('code'));
      }
    } catch (error) {
      tell('failed', said(error));
      return;
    }
    await this.attempt(this.pending);
  }
}

let host = null;
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  if (command.start) {
    await host?.client.close();
    host = new Host(command.start);
    await host.connect();
  } else if (command.call) await host.call(command.call);
  else if (command.answer) await host.answer(command.answer);
  else tell('waited', {}); // its tokens' expiry it learns from the server
}
