import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Message, type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import type { Turn } from '../../shared/conversation.js';
import { authorization, type Deployment, startDeployment } from '../support/deployment.js';
import { openStream, readStream } from '../support/event-streams.js';
import { tinyImages } from '../support/images.js';
import { profiles } from '../support/profiles.js';
import { askWithTools } from '../support/tool-completions.js';

const deployment = await startDeployment({ workers: 0, variables: profiles.plain });
afterAll(deployment.stop);
// Played by the simulator, Anthropic takes what it takes at its own address.
const played = { ANTHROPIC_API_KEY: '', ANTHROPIC_BASE_URL: '', SIMULATOR_URL: deployment.simulator.url };
await deployment.startWorker(played);

/** Who says a turn, and its parts. */
type Said = readonly [role: Turn['role'], ...parts: string[]];

const toMessage = ([role, content = '']: Said): Message => ({ role, content });
const messagesOf = (...said: Said[]): Message[] => said.map(toMessage);
/** A request to Anthropic, Bedrock or Vertex AI, as far as a conversation of texts needs it. */
interface Body {
  system?: Content;
  systemInstruction?: { parts: Content };
  messages?: { role: string; content: Content }[];
  contents?: { role: string; parts: Content }[];
}

type Content = string | { text: string }[];

const textsOf = (content: Content): string[] =>
  typeof content === 'string' ? [content] : content.map(({ text }) => text);

/** The last conversation that a model was sent, each text of its body by itself. */
function readBy(model: string): unknown {
  return readFrom(deployment, model);
}

function readFrom({ simulator }: Deployment, model: string): unknown {
  const call = simulator.calls.list({ model }).at(-1);
  if (call?.provider === 'openai') return call.turns?.map(({ role, content }) => [role, content]);
  const { system, systemInstruction, messages = [], contents = [] } = (call?.body ?? {}) as Body;
  const first = system ?? systemInstruction?.parts;
  return [
    ...(first ? [['system', ...textsOf(first)]] : []),
    ...messages.map(({ role, content }) => [role, ...textsOf(content)]),
    ...contents.map(({ role, parts }) => [role === 'model' ? 'assistant' : role, ...textsOf(parts)]),
  ];
}

const header = 'x-conversation-changes';
const marked = (text: string): string => `<system>\n${text}\n</system>`;
const continued: Said = ['user', 'Continue.'];

/** Where a provider is not listed, it reads the conversation as `openai` does: as it is, and unnamed. */
interface Case {
  given: string;
  said: Said[];
  read: Partial<Record<ProviderId, readonly [said: Said[], changes?: string | undefined]>>;
}

/** The same for Anthropic, Bedrock and Vertex AI. */
const elsewhere = (said: Said[], changes?: string): Case['read'] => ({
  anthropic: [said, changes],
  bedrock: [said, changes],
  vertexai: [said, changes],
});

const a: Said = ['user', 'a'];
const cases: Case[] = [
  {
    given: 'a system text at the beginning, and one between user and assistant',
    said: [
      ['system', 'a'],
      ['user', 'b'],
      ['system', 'c'],
      ['assistant', 'd'],
      ['user', 'e'],
    ],
    read: {
      ...elsewhere(
        [
          ['system', 'a'],
          ['user', 'b', marked('c')],
          ['assistant', 'd'],
          ['user', 'e'],
        ],
        'marked-system',
      ),
      anthropic: [
        [
          ['system', 'a'],
          ['user', 'b'],
          ['system', 'c'],
          ['assistant', 'd'],
          ['user', 'e'],
        ],
      ],
    },
  },
  {
    given: 'the same, ended by the assistant',
    said: [
      ['system', 'a'],
      ['user', 'b'],
      ['system', 'c'],
      ['assistant', 'd'],
    ],
    read: {
      ...elsewhere(
        [['system', 'a'], ['user', 'b', marked('c')], ['assistant', 'd'], continued],
        'marked-system, continued',
      ),
      anthropic: [
        [['system', 'a'], ['user', 'b'], ['system', 'c'], ['assistant', 'd'], continued],
        'continued',
      ],
    },
  },
  {
    given: 'a system text between messages of the user',
    said: [a, ['system', 'b'], ['user', 'c']],
    read: elsewhere([['user', 'a', marked('b'), 'c']], 'marked-system'),
  },
  {
    given: 'a system text between messages of the assistant',
    said: [a, ['assistant', 'b'], ['system', 'c'], ['assistant', 'd'], ['user', 'e']],
    read: elsewhere(
      [a, ['assistant', 'b'], ['user', marked('c')], ['assistant', 'd'], ['user', 'e']],
      'marked-system',
    ),
  },
  {
    given: 'several system texts at the beginning and at the end',
    said: [
      ['system', 'a'],
      ['system', 'b'],
      ['user', 'c'],
      ['system', 'd'],
      ['system', 'e'],
    ],
    read: {
      ...elsewhere(
        [
          ['system', 'a', 'b'],
          ['user', 'c', marked('d'), marked('e')],
        ],
        'marked-system',
      ),
      anthropic: [
        [
          ['system', 'a', 'b'],
          ['user', 'c'],
          ['system', 'd', 'e'],
        ],
      ],
    },
  },
  {
    given: 'several messages of one role in a row',
    said: [a, ['user', 'b'], ['assistant', 'c'], ['assistant', 'd'], ['user', 'e']],
    read: elsewhere([
      ['user', 'a', 'b'],
      ['assistant', 'c', 'd'],
      ['user', 'e'],
    ]),
  },
  {
    given: 'system texts alone',
    said: [
      ['system', 'a'],
      ['system', 'b'],
    ],
    read: elsewhere([['system', 'a', 'b'], continued], 'continued'),
  },
  {
    given: 'a system text that contains the mark, and white space at its ends',
    said: [a, ['system', '\n</system> b '], ['user', 'c']],
    read: elsewhere([['user', 'a', marked('\n</system> b '), 'c']], 'marked-system'),
  },
];

describe.each(cases)('a conversation with $given', ({ said, read }) => {
  it.each(providerIds)(
    '→ %s reads it in its order, and the answer names what was changed',
    async (provider) => {
      const model = `sim-echo@${randomUUID()}`;
      const { status, headers } = await deployment.chat({ provider, model, messages: messagesOf(...said) });
      const [turns, changes = null] = read[provider] ?? [said];
      expect(status).toBe(200);
      expect(readBy(model)).toEqual(turns);
      expect(headers.get(header)).toBe(changes);
    },
  );
});

/** Asks in one way, reads to the end, and gives the headers of each answer that has the reply. */
type Ask<T> = (provider: ProviderId, messages: T[]) => Promise<Headers[]>;

/** A model whose stream goes on behind its third piece once the gate is opened. */
const gatedModel = () => `sim-gate-3@${randomUUID()}`;

const chatIdOf = (headers: Headers): string => headers.get('content-location')?.split('/').at(-1) ?? '';

/** The stored chat that an answer names. */
const storedAt = (named: Headers) =>
  fetch(`${deployment.url}/chat/${chatIdOf(named)}`, { headers: { Authorization: authorization } });

const chatWays: Record<string, Ask<Message>> = {
  'at /chat': async (provider, messages) => [(await deployment.chat({ provider, messages })).headers],
  'at /chat, streamed': async (provider, messages) => {
    const model = gatedModel();
    const opened = await openStream({ url: deployment.url, provider, model, messages });
    deployment.simulator.open(model);
    await readStream(opened);
    return [opened.response.headers];
  },
  'at /chat/{id}, streamed while another stream is written': async (provider, messages) => {
    const [url, model] = [deployment.url, gatedModel()];
    const headers = { 'Idempotency-Key': randomUUID() };
    const writing = await openStream({ url, provider, model, messages, headers });
    const joined = await openStream({ url, chatId: chatIdOf(writing.response.headers) });
    deployment.simulator.open(model);
    await Promise.all([readStream(writing), readStream(joined)]);
    return [writing.response.headers, joined.response.headers];
  },
  'at /chat/{id} after a 202, streamed and then whole': async (provider, messages) => {
    const headers = { Prefer: 'respond-async' };
    const accepted = await deployment.chat({ provider, messages, headers });
    expect([accepted.status, accepted.headers.get(header)]).toEqual([202, null]);
    const stored = await openStream({ url: deployment.url, chatId: chatIdOf(accepted.headers) });
    await readStream(stored);
    return [stored.response.headers, (await storedAt(accepted.headers)).headers];
  },
};

const completionWays: Record<string, Ask<object>> = {
  'at /v1/chat/completions': async (provider, messages) => [
    (await askWithTools(deployment, { model: `${provider}/sim-echo`, messages })).headers,
  ],
  'at /v1/chat/completions, streamed': async (provider, messages) => {
    const model = gatedModel();
    const asked = { model: `${provider}/${model}`, messages, stream: true };
    const onText = () => deployment.simulator.open(model);
    return [(await askWithTools(deployment, asked, { onText })).headers];
  },
  'at /chat/{id} after a 202 of /v1/chat/completions': async (provider, messages) => {
    const asked = { model: `${provider}/sim-echo`, messages };
    const key = { 'Idempotency-Key': randomUUID() };
    const accepted = await askWithTools(deployment, asked, { headers: { ...key, Prefer: 'respond-async' } });
    expect([accepted.status, accepted.headers.get(header)]).toEqual([202, null]);
    const joined = await askWithTools(deployment, asked, { headers: key });
    return [joined.headers, (await storedAt(accepted.headers)).headers];
  },
};

const namedIn = (answers: Headers[]) => answers.map((headers) => headers.get(header));

describe.each(Object.entries({ ...chatWays, ...completionWays }))('an answer %s', (_, ask) => {
  it('of a conversation that the API and the worker change → names both changes', async () => {
    const answers = await ask('bedrock', messagesOf(a, ['user', ' '], ['system', 'b']));
    expect(new Set(namedIn(answers))).toEqual(new Set(['marked-system, dropped-blank']));
  });

  it('of a conversation that needs no change → names none', async () => {
    const answers = await ask('anthropic', messagesOf(['system', 'a'], ['user', 'b'], ['system', 'c']));
    expect(new Set(namedIn(answers))).toEqual(new Set([null]));
  });
});

const callOf = (id: string) => ({ id, type: 'function', function: { name: 'weather', arguments: '{}' } });
const called = (content: string | null = null) => ({
  role: 'assistant',
  content,
  tool_calls: [callOf('a'), callOf('b')],
});
const resultOf = (id: string) => ({ role: 'tool', tool_call_id: id, content: `result of ${id}` });
const image = {
  type: 'image_url',
  image_url: { url: `data:image/png;base64,${tinyImages['image/png'].toString('base64')}` },
};
const textPart = (said: string) => ({ type: 'text', text: said });

describe.each(Object.entries(completionWays))('an answer %s', (_, ask) => {
  it.each([
    ['results in another order', [called(), resultOf('b'), resultOf('a')], 'results-first'],
    ['results in the order of the calls', [called(), resultOf('a'), resultOf('b')], null],
    ['a blank message', [{ role: 'user', content: '\u200b' }], 'dropped-blank'],
    ['a blank text beside an image', [{ role: 'user', content: [textPart(' '), image] }], 'dropped-blank'],
  ])('of a conversation with %s → names the change', async (_given, messages, change) => {
    const answers = await ask('openai', [...messagesOf(a), ...messages]);
    expect(new Set(namedIn(answers))).toEqual(new Set([change]));
  });
});

it.each(providerIds)(
  'results in another order → %s reads them in the order of the calls',
  async (provider) => {
    const model = `sim-echo@${randomUUID()}`;
    const messages = [...messagesOf(a), called(), resultOf('b'), resultOf('a')];
    await askWithTools(deployment, { model: `${provider}/${model}`, messages });
    const read = JSON.stringify(deployment.simulator.calls.list({ model }).at(-1)?.body);
    expect(read.indexOf('result of a')).toBeLessThan(read.indexOf('result of b'));
    expect(read).toContain('result of a');
  },
);

it.each([
  [' ', 'dropped-blank'],
  ['', null],
])('the text %j beside calls → the answer names %s', async (content, change) => {
  const provider = 'openai';
  const messages = [...messagesOf(a), called(content), resultOf('a'), resultOf('b')];
  const { status, headers } = await askWithTools(deployment, { model: `${provider}/sim-echo`, messages });
  expect([status, headers.get(header)]).toEqual([200, change]);
});

describe.each([false, true])('after a fallback (stream: %s)', (stream) => {
  it.each([
    ['openai', 'bedrock', 'marked-system'],
    ['bedrock', 'openai', null],
  ])('from %s to %s → the answer names the changes for the second', async (first, next, changes) => {
    const asked = { model: `${first}/sim-status-500@order`, stream };
    const messages = messagesOf(a, ['system', 'b']);
    const headers = { 'X-LLM-Fallback': `${next}/sim-echo` };
    const answer = await askWithTools(deployment, { ...asked, messages }, { headers });
    expect([answer.status, answer.headers.get('x-llm-provider')]).toEqual([200, next]);
    expect(answer.headers.get(header)).toBe(changes);
  });
});

describe('a conversation that needs changes, under handling=strict', () => {
  const messages = messagesOf(a, ['system', 'b'], ['assistant', 'c']);
  const headers = { Prefer: 'handling=strict', 'X-LLM-Fallback': 'anthropic/sim-echo' };

  // OpenAI's errors have one message.
  it.each([
    ['/chat', ['(marked-system for bedrock)', '(continued for bedrock, anthropic)']],
    ['/v1/chat/completions', ['(marked-system for bedrock)']],
  ])('at %s → 400 with the changes %j, and no call', async (path, changes) => {
    const since = deployment.simulator.calls.lastId;
    const response = await fetch(`${deployment.url}${path}`, {
      method: 'POST',
      headers: {
        ...headers,
        Authorization: authorization,
        'Content-Type': 'application/json',
        'X-LLM': 'bedrock',
      },
      body: JSON.stringify({ messages, ...(path !== '/chat' && { model: 'sim-strict' }) }),
    });
    expect(response.status).toBe(400);
    const text = await response.text();
    for (const change of changes) expect(text).toContain(change);
    expect(deployment.simulator.calls.list({ since })).toEqual([]);
  });
});

describe('a later system text for a server of others at ANTHROPIC_BASE_URL', () => {
  let others: Deployment;
  beforeAll(async () => {
    others = await startDeployment({ variables: profiles.plain });
  });
  afterAll(() => others?.stop());
  const asked = { provider: 'anthropic', messages: messagesOf(a, ['system', 'b']) };

  it('→ is a marked part, and the answer names that', async () => {
    const model = `sim-echo@${randomUUID()}`;
    const { status, headers } = await others.chat({ ...asked, model });
    expect([status, headers.get(header)]).toEqual([200, 'marked-system']);
    expect(readFrom(others, model)).toEqual([['user', 'a', marked('b')]]);
  });

  it('under handling=strict → fails uncalled, with the change and the provider', async () => {
    const since = others.simulator.calls.lastId;
    const { body } = await others.chat({ ...asked, headers: { Prefer: 'handling=strict' } });
    const detail = expect.stringMatching(/ of anthropic takes no system text after .*\(marked-system\)/);
    expect(body).toMatchObject({ code: 'provider_rejected', detail });
    expect(others.simulator.calls.list({ since })).toEqual([]);
  });
});
