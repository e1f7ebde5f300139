import { getEventListeners } from 'node:events';
import { expect, vi } from 'vitest';
import type { ChatCommand, ChatReply, StoreOptions } from '../../api/chat/chat-command.js';
import type { Completion } from '../../api/chat/chat-result.js';
import { ChatService } from '../../api/chat/chat-service.js';
import type { FoundChat } from '../../api/chat/idempotent-entry.js';
import { LiveChats } from '../../api/chat/live-chats.js';
import type { TextPosition } from '../../api/chat/reply-stream.js';
import { UserShares } from '../../api/chat/user-shares.js';
import type { JobResult, NewJob } from '../../api/fleet-link/chat-receiver.js';
import { Failure } from '../../shared/failures.js';
import { Heartbeats } from '../../shared/fleet/heartbeats.js';
import { LivePools } from '../../shared/fleet/live-pools.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import { countAll } from '../../shared/queue/add-attempt.js';
import { command } from './attached.js';
import { userNamed } from './identities.js';
import { countOwnTimers } from './own-timers.js';

type Link = ConstructorParameters<typeof ChatService>[0]['link'];

export const ok: Completion = {
  ...{ kind: 'ok', text: 'Hello', callId: 'call', model: 'm' },
  ...{ queueMs: 1, providerMs: 1 },
};
export const withKey: StoreOptions = {
  ...{ owner: userNamed('me'), key: 'k', isAsync: false },
  onResolved: () => undefined,
};
export const turn = () => new Promise((resolve) => setImmediate(resolve));

interface StartOptions {
  /** Of each user. */
  limits?: ConstructorParameters<typeof UserShares>[0];
  /** Since when no worker has been heard; by default no time, so that it may still be heard. */
  since?: number;
  uploads?: NonNullable<ConstructorParameters<typeof ChatService>[0]['uploads']>;
}

/** The steps of a test, one after the other; each ends when it has no more effects. */
export type Step = (service: Started) => unknown;
export type Started = ReturnType<typeof startChatService>;

export const asks =
  (own: Partial<ChatCommand> = {}): Step =>
  ({ ask }) =>
    void ask(own);
/** A request that reads the reply as it is written. */
export const reads =
  (own: Partial<ChatCommand> = {}, from?: TextPosition): Step =>
  ({ ask, sink }) =>
    void ask({ stream: { sink, from }, ...own });
export const isAdded: Step = ({ adding }) => adding.resolve();
export const isNotAdded: Step = ({ adding }) => adding.reject(new Failure('queue_unavailable'));
export const ends =
  (outcome: Outcome = ok): Step =>
  ({ chats }) =>
    chats.onOutcome('one', outcome);
export const leaves =
  (reason?: Failure): Step =>
  ({ client }) =>
    client.abort(reason);
export const says =
  (at: number, text: string, callId?: string): Step =>
  ({ receive }) =>
    receive(at, text, callId);
export const ms =
  (time: number): Step =>
  () =>
    vi.advanceTimersByTime(time);

/** Ends a chat that has to be there still. */
export const goesOn: Step = ({ chats }) => {
  expect(chats.all()).toHaveLength(1);
  chats.onOutcome('one', ok);
};

/** Leaves out how often the text was asked for, which depends on the time that has passed. */
export const withoutResends: Step = ({ asked }) => {
  asked.splice(0, asked.length, ...asked.filter((each) => typeof each === 'string'));
};

/** The steps of a request until it is answered. */
export const waits = { kind: 'waits' };

/** Given, steps, a part of the reply or of the failure, the requests to the queue, and the written text. */
export type Row = [given: string, steps: Step[], is: object, asked: string, written?: string];

export async function comeTo(service: Started, [, steps, is, asked, written = '']: Row): Promise<void> {
  for (const step of steps) {
    await step(service);
    await turn();
  }
  const answer = service.answer.catch((error: unknown) => error);
  expect(await Promise.race([answer, turn().then(() => waits)])).toMatchObject(is);
  expect(service.asked.join(', ').replaceAll(' one', '')).toBe(asked);
  expect(service.written.join('|')).toBe(written);
  if (is !== waits) return;
  isAdded(service);
  goesOn(service);
  await answer;
}

/** A chat service on a fake clock. The test is its client, its queue, its records and its worker. */
export function startChatService({ limits = {}, since, uploads }: StartOptions = {}) {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
  });
  const ownTimers = countOwnTimers('api/chat');
  const client = new AbortController();
  const chats = new LiveChats();
  const shares = new UserShares(limits);
  const left = Promise.withResolvers<never>();
  left.promise.catch(() => undefined);
  /** The names of the readers that have asked the worker. */
  const readers = new Set<string | undefined>();
  const started = {
    ...{ client, chats, shares, readers },
    /** The steps done to jobs and chats, in order; a number asks the worker for the text from there. */
    asked: [] as (string | number)[],
    added: [] as NewJob[],
    written: [] as string[],
    opened: 0,
    refused: [] as string[],
    stored: 0,
    /** To the last request. */
    answer: Promise.resolve() as Promise<unknown>,
    /** The test confirms the add. */
    adding: Promise.withResolvers<void>(),
    isConnected: true,
    /** Whether the client reads. */
    isRead: true,
    /** Has it break off what it has not read. */
    breakOff: left.reject,
    /** The chat of a key. */
    find: async (): Promise<FoundChat> => ({}),
    sink: {
      begin: () => undefined,
      write: (text: string): boolean => {
        started.written.push(text);
        return started.isRead;
      },
      drained: (): Promise<void> => (started.isRead ? Promise.resolve() : left.promise),
    },
    /** Has every key stand for the chat `one`, of which the records say this. */
    claim: (result: JobResult): void => {
      const deadline = Date.now() + 60_000;
      const chat = { id: 'one', deadline, expiresAt: deadline, current: { provider: 'openai' } } as const;
      started.find = async () => ({ joined: { chat, result } });
    },
    ask: (own: Partial<ChatCommand> = {}): Promise<ChatReply> => {
      const asking = command({ requestId: 'one', signal: client.signal, ...own });
      const reply = chatService.createChat(asking);
      reply.catch(() => undefined);
      started.answer = reply;
      return reply;
    },
    /** A worker sends a piece of the text to all who read it. */
    receive: (at: number, text: string, callId = 'call') => {
      for (const reader of new Set([undefined, ...readers]))
        chats.onDelta({ jobId: 'one', ...(reader && { reader }), callId, at, text });
    },
    /** After every test, nothing is left of a chat, at the latest a second after its end. */
    end: () => {
      vi.advanceTimersByTime(1000);
      const listeners = getEventListeners(client.signal, 'abort');
      const outstanding = Object.values(shares.of('openai')).map((levels) => countAll(levels));
      expect([ownTimers(), chats.all(), listeners, outstanding]).toEqual([0, [], [], [0, 0]]);
      vi.useRealTimers();
    },
  };
  const { asked, added } = started;
  const link: Link = {
    assertConnected: () => {
      if (!started.isConnected) throw new Failure('queue_unavailable');
    },
    pools: new LivePools(new Heartbeats(since === undefined ? {} : { since })),
    check: async () => undefined,
    add: (jobId, job) => {
      added.push(job);
      asked.push(`add ${jobId}`);
      return started.adding.promise;
    },
    read: async () => ({ state: 'unknown' }),
    cancel: ({ jobId }) => void asked.push(`cancel ${jobId}`),
    cancelUnconfirmed: ({ jobId }) => void asked.push(`cancel unconfirmed ${jobId}`),
    requestResend: (_, { reader, from, left: leaves }) => {
      readers.add(reader);
      asked.push(leaves ? 'left' : from);
    },
  };
  const chatService = new ChatService({
    ...{ chats, shares, timeoutMs: 60_000, maxMs: 60_000, maxStreamMs: 300_000, now: () => Date.now() },
    ...(uploads && { uploads }),
    link,
    storedChats: {
      find: () => started.find(),
      open: async (_, { deadline, current }) => {
        started.stored += 1;
        return { chat: { id: 'one', deadline, expiresAt: deadline + 1, current } };
      },
      cancelUnconfirmed: ({ owner, id }) =>
        void asked.push(`cancel unconfirmed ${id} of ${owner === 'any' ? owner : owner.name}`),
    },
  });
  chats.listen(shares);
  chats.listen({
    refused: (_, { code }) => void started.refused.push(code),
    opened: () => {
      started.opened += 1;
    },
    detached: ({ isStored }) => void (isStored && asked.push('detached')),
  });
  return Object.assign(started, { chatService });
}
