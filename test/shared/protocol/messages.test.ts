import { describe, expect, it } from 'vitest';
import type { Part } from '../../../shared/conversation.js';
import { failureCodes } from '../../../shared/failures.js';
import { queuedBytesOf, writeChat } from '../../../shared/json/json-worker.js';
import {
  type ChatJob,
  chatJobSchema,
  encodeChatJob,
  type JobTexts,
} from '../../../shared/protocol/messages.js';
import { decodeOutcome, encodeOutcome, type Outcome } from '../../../shared/protocol/outcome.js';

/** The message on the other side. */
const sent = (message: object): unknown => JSON.parse(JSON.stringify(message));

const timings = { queueMs: 1.5, providerMs: 0 };
const outcomes: Outcome[] = [
  { kind: 'ok', text: ' a\u2028\n', model: 'm', usage: { inputTokens: 1, outputTokens: 2 }, ...timings },
  { kind: 'ok', text: 'a', model: 'm', ...timings },
  { kind: 'truncated', text: 'a', model: 'm', ...timings },
  {
    ...{ kind: 'ok', text: 'Hi{}{}Bye', model: 'm', ignored: ['seed'], ...timings },
    marks: [
      { kind: 'call', at: 2, id: 'a', name: 'f' },
      { kind: 'call', at: 4, id: 'b', name: 'f' },
      { kind: 'text', at: 6 },
    ],
    usage: { inputTokens: 3, outputTokens: 2, cachedTokens: 1, cacheWriteTokens: 1, reasoningTokens: 1 },
  },
  { kind: 'failed', code: 'provider_rejected', retryable: false, refusedParameter: 'toolChoice', ...timings },
  {
    ...{ kind: 'failed', code: 'context_length_exceeded', retryable: false, contextTokens: 8192 },
    ...timings,
  },
  { kind: 'failed', code: 'provider_timeout', retryable: true, limitMs: 300, fellSilent: true, ...timings },
  {
    kind: 'ok',
    text: 'a',
    model: 'm',
    ...timings,
    attempts: [
      { provider: 'openai', code: 'provider_timeout', limitMs: 60_000 },
      { provider: 'anthropic', model: 'm', code: 'ok', usage: { inputTokens: 1, outputTokens: 2 } },
    ],
  },
  { kind: 'blocked', ...timings },
  { kind: 'cancelled', ...timings },
  { kind: 'failed', code: 'provider_error', retryable: true, retryAfterMs: 1000, ...timings },
  ...failureCodes.map((code): Outcome => ({ kind: 'failed', code, retryable: false, ...timings })),
];

const job: ChatJob = {
  v: 1,
  provider: 'openai',
  model: 'm',
  turns: [
    { role: 'system', content: ' s\u0000' },
    { role: 'assistant', content: '🎉' },
    { role: 'user', content: 'u' },
  ],
  deadline: 1_800_000_000_000,
  replyTo: 'node',
  user: 'me',
};

describe('decodeOutcome', () => {
  it.each(outcomes)('reads what was written: %j', (outcome) => {
    expect(decodeOutcome(encodeOutcome(outcome))).toEqual(outcome);
  });

  it.each([
    ['no kind', { text: 'a', model: 'm', ...timings }],
    ['an unknown kind', { kind: 'unheard of', ...timings }],
    ['ok without a text', { kind: 'ok', model: 'm', ...timings }],
    ['no timings', { kind: 'blocked' }],
    ['half a usage', { kind: 'ok', text: 'a', model: 'm', usage: { inputTokens: 1 }, ...timings }],
  ])('refuses %s', (_, outcome) => {
    expect(() => decodeOutcome(JSON.stringify(outcome))).toThrow('');
  });

  it.each(['x', 'toString'])('takes %s, a code it does not know, for internal', (code) => {
    const text = JSON.stringify({ v: 1, kind: 'failed', code, retryable: true, ...timings });
    expect(decodeOutcome(text)).toMatchObject({ kind: 'failed', code: 'internal' });
  });

  it.each([undefined, null, {}, 1, '', '{'])('refuses %j', (text) => {
    expect(() => decodeOutcome(text)).toThrow('');
  });
});

describe('queuedBytesOf', () => {
  const long = 'x'.repeat(10_000);
  const turn = (...content: Part[]): JobTexts => ({ turns: [{ role: 'user', content }] });

  it.each<[string, JobTexts]>([
    ['a text', { turns: [{ role: 'user', content: long }] }],
    ['a text of quotes', { turns: [{ role: 'user', content: '"'.repeat(10_000) }] }],
    ['many short messages', { turns: Array(500).fill({ role: 'user', content: 'ä' }) }],
    ["a tool's description", { turns: [], parameters: { tools: [{ name: 'f', description: long }] } }],
    ["a tool's schema", { turns: [], parameters: { tools: [{ name: 'f', parameters: { title: long } }] } }],
    [
      "a format's schema",
      { turns: [], parameters: { format: { type: 'json_schema', name: 'f', schema: { title: long } } } },
    ],
    ['the id of a call', turn({ type: 'tool_call', id: long, name: 'f', arguments: '{}' })],
    ['the name of a call', turn({ type: 'tool_call', id: 'a', name: long, arguments: '{}' })],
    ['the address of an image', turn({ type: 'image', url: `https://example.org/${long}` })],
    ['a signature', turn({ type: 'opaque', provider: 'vertexai', data: long })],
    [
      'references to images',
      turn(...Array(100).fill({ type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64), bytes: 1 })),
    ],
  ])('of a chat with %s -> the length that it has on the queue', (_, chat) => {
    const payload = encodeChatJob({ ...job, ...chat });
    const { turns, parameters = '{}' } = payload;
    const written = Buffer.byteLength(JSON.stringify({ turns, parameters }));
    expect(written - queuedBytesOf(writeChat(chat))).toBe('{"turns":,"parameters":}'.length - '[,]'.length);
  });
});

describe('chatJobSchema', () => {
  const block: Part = { type: 'opaque', provider: 'anthropic', model: 'm', role: 'start', data: '{}' };
  const { model: _, ...withoutModel } = job;
  it.each<[string, ChatJob]>([
    ['a model', job],
    ['no model', withoutModel],
    ['the time until which a stored chat is kept', { ...job, keptUntil: 1_800_000_000_000 }],
    ['parameters', { ...job, parameters: { maxOutputTokens: 5, stop: ['\u0000', '🎉'], temperature: 0 } }],
    [
      'an attempt of a stream, and its fallback',
      {
        ...job,
        user: '01890000-0000-7000-8000-000000000001',
        attempt: 2,
        fallback: [{ provider: 'anthropic' }, { provider: 'bedrock', model: 'm2' }],
        stream: true,
        traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      },
    ],
  ])('reads what was sent, without a NUL character, which PostgreSQL refuses: %s', (_, written) => {
    const encoded = encodeChatJob(written);
    expect(chatJobSchema.parse(sent(encoded))).toEqual(written);
    expect(JSON.stringify(encoded)).not.toMatch(/(?<!\\)(\\\\)*\\u0000/);
  });

  it('reads content in parts of every kind, and refuses other ones, and none', () => {
    const withParts = (...content: object[]) =>
      chatJobSchema.safeParse({ ...encodeChatJob(job), turns: JSON.stringify([{ role: 'user', content }]) });
    const parts: Part[] = [
      { type: 'text', text: 'a' },
      { type: 'image', url: 'https://x' },
      { type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64), bytes: 1 },
      { type: 'opaque', provider: 'vertexai', data: '{}' },
      block,
      { type: 'tool_call', id: 'a', name: 'f', arguments: '{}' },
      { type: 'tool_result', callId: 'a', content: '', isError: true },
      {
        type: 'tool_result',
        callId: 'b',
        content: [{ type: 'image', url: 'https://example.org/i' }],
        cache: '1h',
      },
    ];
    expect(withParts(...parts).data?.turns).toEqual([{ role: 'user', content: parts }]);
    expect(withParts({ type: 'audio', url: 'x' }).success).toBe(false);
    expect(withParts().success).toBe(false);
  });

  it.each([
    ['no turns', { turns: '[]' }],
    ['turns that are not text', { turns: [{ role: 'user', content: 'a' }] }],
    ['another role', { turns: '[{"role":"tool","content":"a"}]' }],
    ['parameters that are not text', { parameters: { seed: 1 } }],
    ['a parameter out of range', { parameters: '{"temperature":3}' }],
    ['another provider', { provider: 'x' }],
    ['another version', { v: 5 }],
    ['no deadline', { deadline: undefined }],
    ['nobody to tell', { replyTo: undefined }],
  ])('refuses a job with %s', (_, change) => {
    expect(chatJobSchema.safeParse(sent({ ...encodeChatJob(job), ...change })).success).toBe(false);
  });

  // JSON.parse throws through the schema, and its message quotes the conversation.
  it('refuses turns that are broken JSON, and does not quote them', () => {
    const broken = { ...encodeChatJob(job), turns: 'canary' };
    const { error } = chatJobSchema.safeParse(broken);
    expect(error?.message).toBeDefined();
    expect(error?.message).not.toContain('canary');
  });
});
