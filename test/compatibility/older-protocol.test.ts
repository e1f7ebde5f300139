import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { withLock } from '../../dev/lock.js';
import { type ChatJob, encodeChatJob } from '../../shared/protocol/messages.js';
import { encodeOutcome, type Outcome } from '../../shared/protocol/outcome.js';
import type { Mark } from '../../shared/protocol/parts.js';
import { encodeStoredChat, encodeStoredResult, type StoredChat } from '../../shared/protocol/stored-chat.js';
import { partsVersion } from '../../shared/protocol/version.js';
import { isInHistory, olderCommit } from './older-release.js';

// What this release writes, beside the protocol of the release before it, taken from the history of this repository.

type Older = {
  readonly [File in 'deltas' | 'messages' | 'outcome' | 'stored-chat' | 'version']: Record<
    string,
    // biome-ignore lint/suspicious/noExplicitAny: the code of another release has no types here
    any
  >;
};

const run = promisify(execFile);
const hasHistory = await isInHistory();
let older: Older;

beforeAll(async () => {
  if (!hasHistory) return;
  const folder = resolve('test-results', `older-protocol-${olderCommit}`);
  mkdirSync('test-results', { recursive: true });
  await withLock(`${folder}.lock`, async () => {
    if (existsSync(folder)) return;
    const archive = `${folder}.tar`;
    mkdirSync(`${folder}.new`, { recursive: true });
    await run('git', ['archive', '--output', archive, olderCommit, 'shared']);
    await run('tar', ['-xf', archive, '-C', `${folder}.new`]);
    await run('mv', [`${folder}.new`, folder]);
    rmSync(archive);
  });
  const names = ['deltas', 'messages', 'outcome', 'stored-chat', 'version'] as const;
  const files = names.map(async (name) => [name, await import(`${folder}/shared/protocol/${name}.ts`)]);
  older = Object.fromEntries(await Promise.all(files));
});

const job: ChatJob = {
  ...{ v: 1, provider: 'anthropic', model: 'm', deadline: 1, replyTo: 'node', user: 'me', stream: true },
  turns: [{ role: 'user', content: 'a\u0000🎉' }],
  parameters: { temperature: 0, stop: ['x'], parallelToolCalls: true },
  fallback: [{ provider: 'openai' }],
};
const usage = { inputTokens: 1, outputTokens: 2 };
const outcome: Outcome = { kind: 'ok', text: '{}', model: 'm', usage, queueMs: 1, providerMs: 2 };
const marks: Mark[] = [{ kind: 'call', at: 0, id: 'a', name: 'f' }];
const chat: StoredChat = {
  ...{ v: 1, id: 'id', owner: 'ann', ownerId: 'id of ann', provider: 'openai', requestHash: 'abc' },
  ...{ createdAt: 1, deadline: 2, keptUntil: 3 },
};

describe.skipIf(!hasHistory)('the release before this one', () => {
  it.each<[string, Partial<ChatJob>]>([
    ['tools', { parameters: { tools: [{ name: 'f' }] } }],
    ['a format', { parameters: { format: { type: 'json_object' } } }],
    ['parts', { turns: [{ role: 'user', content: [{ type: 'text', text: 'a' }] }] }],
  ])('leaves the job of a chat with %s to a newer one', (_, own) => {
    const payload = encodeChatJob({ ...job, ...own });
    expect(payload.v).toBe(partsVersion);
    expect(older.version.isNewer(payload)).toBe(true);
    expect(older.messages.chatJobSchema.safeParse(payload).success).toBe(false);
  });

  it('knows that a newer one alone can read how a chat with calls has ended, and its records', () => {
    const written = [
      encodeOutcome({ ...outcome, marks }),
      encodeStoredResult({ ...outcome, marks }, 5),
      encodeStoredChat({ ...chat, parts: true }),
    ];
    for (const text of written) expect(older.version.isNewer(text), text).toBe(true);
    expect(older.deltas.deltasSchema.safeParse({ v: partsVersion, deltas: [] }).success).toBe(false);
  });

  it('writes the job, the outcome and the records of a chat of text alone byte for byte as this one does', () => {
    expect(JSON.stringify(encodeChatJob(job))).toBe(JSON.stringify(older.messages.encodeChatJob(job)));
    expect(encodeOutcome(outcome)).toBe(older.outcome.encodeOutcome(outcome));
    expect(encodeStoredResult(outcome, 5)).toBe(older['stored-chat'].encodeStoredResult(outcome, 5));
    expect(encodeStoredChat(chat)).toBe(older['stored-chat'].encodeStoredChat(chat));
  });

  it('reads how a chat with tools has ended without a call, and which hints were left out', () => {
    const text = encodeOutcome({ ...outcome, ignored: ['seed'], usage: { ...usage, cachedTokens: 1 } });
    expect(older.outcome.decodeOutcome(text)).toEqual(outcome);
  });
});
