import { expect } from 'vitest';
import { addUser, createToken } from '../support/accounts.js';
import { quillgate } from '../support/command-line.js';
import type { Deployment, StartedApi } from '../support/deployment.js';
import { readEvents } from '../support/event-streams.js';
import { withLag } from '../support/lateness.js';
import type { Books } from './support/books.js';
import { eventually, timed } from './support/expectations.js';
import { fault } from './support/fault.js';

/** Of each kind: chats whose callers wait, and stored ones. */
const queued = 10;
const admin = { name: 'ada', secret: 'canary-of-the-console-secret-37' };

/** Credentials, where they are good, and what ends them. */
interface Access {
  path: '/chat' | '/v1/chat/completions' | '/admin/chat';
  headers: Record<string, string>;
  end(): Promise<unknown>;
}

type Start = (deployment: Deployment) => Promise<Access>;

const run = ({ stores: { DATABASE_URL = '' } }: Deployment, ...command: string[]) =>
  quillgate(command, { DATABASE_URL });

const asUser: Start = async (deployment) => {
  const headers = { Authorization: await addUser(deployment, 'leaving'), 'X-LLM': 'openai' };
  return { path: '/chat', headers, end: () => run(deployment, 'users', 'remove', 'leaving') };
};

const withToken: Start = async (deployment) => {
  const { id, token } = await createToken(deployment, 'chat');
  const headers = { Authorization: `Bearer ${token}` };
  return { path: '/v1/chat/completions', headers, end: () => run(deployment, 'tokens', 'revoke', id) };
};

const signIn: Start = async ({ url }) => {
  const json = { 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' };
  const session = `${url}/admin/session`;
  const response = await fetch(session, { method: 'POST', headers: json, body: JSON.stringify(admin) });
  const [Cookie = ''] = response.headers.getSetCookie()[0]?.split(';') ?? [];
  const headers = { Cookie, 'Sec-Fetch-Site': 'same-origin', 'X-LLM': 'openai' };
  const end = () => fetch(session, { method: 'DELETE', headers: { ...json, Cookie } });
  return { path: '/admin/chat', headers, end };
};

/** Asks for a chat; the body of `/v1` says the model, and whether it is a stream. */
function ask({ url }: Pick<StartedApi, 'url'>, { path, headers }: Access, call: Call): Promise<Response> {
  const { model, isStream, isStored } = call;
  const messages = [{ role: 'user', content: 'Hello' }];
  const body = path.startsWith('/v1')
    ? { messages, model: `openai/${model}`, stream: isStream }
    : { messages };
  return fetch(url + path, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-LLM-Model': model,
      ...(isStream && { Accept: 'text/event-stream' }),
      ...(isStored && { Prefer: 'respond-async' }),
      ...headers,
    },
    body: JSON.stringify(body),
  });
}

interface Call {
  model: string;
  isStream?: boolean;
  isStored?: boolean;
}

/**
 * Opens a stream and queues chats behind it, ends the access, and gives how long what is attached took to end, in
 * milliseconds.
 */
async function endAccess(books: Books, start: Start) {
  const variables = {
    ...{ OPENAI_CONCURRENCY: '1', CHAT_TIMEOUT_MS: '30000' },
    ...{ ADMIN_USERNAME: admin.name, ADMIN_PASSWORD: admin.secret },
  };
  const deployment = await books.start({ workers: 1, variables });
  const other = await deployment.startApi();
  const access = await start(deployment);
  const stream = await ask(deployment, access, { model: 'sim-stream-600-50@stream', isStream: true });
  expect(stream.status).toBe(200);
  const lastEvent = lastOf(stream);
  const models = (kind: string) => Array.from({ length: queued }, (_, n) => `sim-latency-50@${kind}-${n}`);
  const waiting = models('attached').map((model) => ask(other, access, { model }));
  for (const model of models('stored'))
    expect((await ask(other, access, { model, isStored: true })).status).toBe(202);
  await eventually(async () => expect(await books.jobs.unfinished()).toBe(2 * queued + 1));
  await access.end();
  const { result: tookMs, lagMs } = await withLag(() => timed(Promise.all([lastEvent, ...waiting])));
  const last: unknown = await lastEvent;
  expect(last).toMatchObject({ code: 'unauthorized' });
  for (const response of await Promise.all(waiting)) {
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toMatch(/realm/);
  }
  expect(tookMs).toBeLessThan(1000 + lagMs);
  await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
  const called = new Set(deployment.simulator.calls.list().map(({ model = '' }) => model));
  const callsOf = (kind: string) => models(kind).filter((model) => called.has(model)).length;
  return { tookMs: Math.round(tookMs), attached: callsOf('attached'), stored: callsOf('stored') };
}

/** The last event of a stream: a problem, or the object in which OpenAI's clients find an error. */
async function lastOf(stream: Response): Promise<unknown> {
  let last: { error?: unknown } = {};
  for await (const { data } of readEvents(stream)) last = data;
  return last.error ?? last;
}

const endings: [injected: string, start: Start, storedCalls: number][] = [
  ['a user is removed', asUser, 0],
  ['a token is revoked', withToken, queued],
  ['a session is signed out', signIn, queued],
];
for (const [injected, start, storedCalls] of endings)
  fault(
    { id: 'F4', timed: true, injected: `${injected}, with a stream open and ${2 * queued} chats queued` },
    async (books) => {
      const { tookMs, attached, stored } = await endAccess(books, start);
      expect(stored).toBe(storedCalls);
      // A queued chat may take the slot of the stream before its own cancel arrives, which then ends its call.
      expect(attached).toBeLessThanOrEqual(storedCalls === 0 ? 0 : 1);
      return `401 for all that was attached, ${tookMs} ms after it; ${stored} stored chats went on`;
    },
  );
