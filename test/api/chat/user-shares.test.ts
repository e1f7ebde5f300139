import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AttachedRequest } from '../../../api/chat/attached-request.js';
import { type ChatCommand, jobOwnerOf } from '../../../api/chat/chat-command.js';
import type { LiveChat } from '../../../api/chat/live-chat.js';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { maxInFlightOf, UserShares } from '../../../api/chat/user-shares.js';
import type { ProviderId } from '../../../shared/contracts/contract.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { countAll, countUpTo, type JobClass, levelOfNth } from '../../../shared/queue/add-attempt.js';
import { attach, command, leave } from '../../support/attached.js';

const me = { provider: 'openai', user: 'me', isAsync: false } as const;
const elsewhere = { ...me, provider: 'bedrock' } as const;
const ok: Outcome = { kind: 'ok', text: 'Hello', model: 'm', queueMs: 1, providerMs: 1 };
const limited = expect.objectContaining({ code: 'rate_limited', status: 429 });
const stored = { expiresAt: Number.POSITIVE_INFINITY };

let shares: UserShares;
let chats: LiveChats;
/** How many chats have been opened. */
let count: number;

type Options = ConstructorParameters<typeof UserShares>[0];
const start = (options?: Options) => {
  shares = new UserShares(options);
  chats = new LiveChats();
  chats.listen(shares);
};

beforeEach(() => {
  count = 0;
  start();
});
afterEach(() => {
  vi.useRealTimers();
  for (const { id } of chats.all()) end(id);
  // After every test, nothing is counted once all chats have ended.
  const outstanding = [shares.of('openai'), shares.of('bedrock')];
  expect(outstanding.map(({ waitedFor, async }) => countAll(waitedFor) + countAll(async))).toEqual([0, 0]);
});

type Opened = AttachedRequest & { readonly level: number };

/** A `POST` for a new chat, or for that of this id. */
function open(own: Partial<ChatCommand> = {}, { id = `chat ${++count}`, isStored = false } = {}): Opened {
  const level = shares.nextLevel(jobOwnerOf(command(own), 'openai'), own.jobClass);
  const request = attach(chats, id, { command: own, level, ...(isStored && { chat: stored }) });
  return Object.assign(request, { level });
}
const openMany = (many: number): Opened[] => Array.from({ length: many }, () => open());
const end = (id: string) => chats.onOutcome(id, ok);
const endAll = (requests: readonly AttachedRequest[]) => {
  for (const { chat } of requests) end(chat.id);
};
const leaveBehind = (request: AttachedRequest) => chats.leave(request, 'timeout', { goesOn: true });
const waitedFor = (provider: ProviderId) => countAll(shares.of(provider).waitedFor);

describe('the level of a chat', () => {
  it('has others of its user outstanding → it is one further back at each doubling of them', () => {
    const levels = openMany(17).map(({ level }) => level);
    expect(levels).toEqual([0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5]);
  });

  it('has chats of others, elsewhere or asynchronous beside it → they do not count', () => {
    openMany(100);
    expect(shares.nextLevel(me)).toBe(7);
    expect(shares.nextLevel({ ...me, user: 'another' })).toBe(0);
    expect(shares.nextLevel(elsewhere)).toBe(0);
    expect(shares.nextLevel({ ...me, isAsync: true })).toBe(0);
    open({ isLowPriority: true });
    expect(countAll(shares.of('openai').async)).toBe(1);
    expect(shares.nextLevel({ ...me, isAsync: true })).toBe(1);
    expect(waitedFor('openai')).toBe(100);
  });

  it("has a few of its user's chats end → new ones do not overtake the older ones, until all have", () => {
    const requests = openMany(100);
    endAll(requests.slice(0, 60));
    expect(open().level).toBe(7);
    endAll(requests.slice(60, 90));
    expect(open().level).toBe(4);
    for (const { id } of chats.all()) end(id);
    expect([shares.nextLevel(me), waitedFor('openai')]).toEqual([0, 0]);
  });

  it('is of a flood → there is a last one', () => {
    const opened = Array.from({ length: 70_000 }, () => {
      const opening = { command: command(), level: shares.nextLevel(me) };
      const chat = { opening, attempt: { provider: 'openai' } } as LiveChat;
      shares.opened(chat);
      return chat;
    });
    expect(opened.at(-1)?.opening?.level).toBe(16);
    expect(waitedFor('openai')).toBe(70_000);
    for (const chat of opened) shares.ended(chat);
  });
});

describe('the level of a chat that has a class', () => {
  const openMarked = (jobClass: JobClass, many: number) =>
    Array.from({ length: many }, () => open({ jobClass }));
  const classes = ['ordinary', 'subagent', 'auxiliary'] as const;
  const next = () => classes.map((each) => shares.nextLevel(me, each));

  it('has none beside it → it stands as the first, the ninth or the 33rd of its user', () => {
    expect(next()).toEqual([1, 9, 33].map(levelOfNth));
  });

  it('has others beside it → a turn counts turns, one of a subagent all and 8, and other work all and 32', () => {
    openMany(3);
    openMarked('subagent', 10);
    expect(next()).toEqual([3, 21, 45].map((before) => levelOfNth(before + 1)));
    openMarked('auxiliary', 20);
    expect(next()).toEqual([3, 41, 65].map((before) => levelOfNth(before + 1)));
    // The share of another user, and that of asynchronous chats, are others.
    expect(shares.nextLevel({ ...me, user: 'another' }, 'subagent')).toBe(4);
    expect(shares.nextLevel({ ...me, isAsync: true }, 'subagent')).toBe(4);
  });

  it('has older ones of its class → it does not overtake them until three quarters have ended', () => {
    const agents = openMarked('subagent', 57);
    openMany(1);
    expect(next()).toEqual([1, 7, 7]);
    endAll(agents.slice(0, 30));
    expect(next()).toEqual([1, 7, 6]);
    endAll(agents.slice(30, 50));
    expect(next()).toEqual([1, 5, 6]);
    endAll(agents.slice(50));
    expect(next()).toEqual([1, 4, 6]);
  });

  it('is passed on → it counts there with its class', () => {
    for (const { chat } of openMarked('subagent', 20))
      chats.onMoved(chat.id, { provider: 'bedrock', attempt: 2 });
    expect(next()).toEqual([0, 4, 6]);
    expect([shares.nextLevel(elsewhere), shares.nextLevel(elsewhere, 'subagent')]).toEqual([0, 5]);
  });

  /** So many jobs of one class come, and then so many of all end, the oldest or the newest ones. */
  const phase = fc.record({
    jobClass: fc.constantFrom(...classes),
    comeCount: fc.integer({ min: 1, max: 150 }),
    endCount: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 200 })),
    isOldest: fc.boolean(),
  });
  type Check = (facts: { level: number; before: number; upTo: number[] }) => void;
  const commands = {
    ordinary: command(),
    subagent: command({ jobClass: 'subagent' }),
    auxiliary: command({ jobClass: 'auxiliary' }),
  };

  /** A job comes; gives its chat, and the number of jobs outstanding up to each level. */
  function come(jobClass: JobClass) {
    const level = shares.nextLevel(me, jobClass);
    const chat = {
      opening: { command: commands[jobClass], level },
      attempt: { provider: 'openai' },
    } as LiveChat;
    shares.opened(chat);
    const { waitedFor: byLevel } = shares.of('openai');
    return { chat, level, upTo: byLevel.map((_, each) => countUpTo(byLevel, each)) };
  }
  const endAllOf = (ended: readonly LiveChat[]) => {
    for (const chat of ended) shares.ended(chat);
  };

  /** Calls `check` after each job that comes in a random order. */
  function inAnyOrder(check: Check, jobs = phase): void {
    const play = fc.property(fc.array(jobs, { minLength: 1, maxLength: 8 }), (order) => {
      start();
      const outstanding: LiveChat[] = [];
      for (const { jobClass, comeCount, endCount, isOldest } of order) {
        for (let n = 0; n < comeCount; n += 1) {
          const { chat, ...facts } = come(jobClass);
          check({ ...facts, before: outstanding.length });
          outstanding.push(chat);
        }
        endAllOf(outstanding.splice(isOldest ? 0 : -endCount, endCount));
      }
      endAllOf(outstanding);
      expect(shares.nextLevel(me)).toBe(0);
    });
    fc.assert(play, { seed: 41, numRuns: 200 });
  }
  /** Checks how many jobs there are up to each level. */
  const atMost =
    (most: (level: number) => number): Check =>
    ({ upTo }) =>
      expect(upTo.filter((count, level) => count > most(level))).toEqual([]);

  it('marks none → its user has one job of level 0, two up to level 1, and twice as many up to each next', () => {
    inAnyOrder(
      atMost((level) => 2 ** level),
      phase.map((jobs) => ({ ...jobs, jobClass: 'ordinary' as const })),
    );
  });

  it('marks any → its user has as many up to a level as without marks up to the next, at most', () => {
    // Not even that up to level 3: another user's turn waits for one job of level 0, as without marks.
    inAnyOrder(atMost((level) => 2 ** (level > 3 ? level + 1 : level)));
  });

  it('marks any → it stands no further back than beside 32 more', () => {
    // A level falls late, by one.
    inAnyOrder(({ level, before }) => expect(level).toBeLessThanOrEqual(levelOfNth(before + 33) + 1));
  });
});

describe('an outstanding chat', () => {
  it('has several requests → it counts once, for the first, until the last one has left it', () => {
    const id = 'joined';
    const first = open({}, { id });
    const second = open({ user: 'another' }, { id });
    expect(waitedFor('openai')).toBe(1);
    leave(chats, first);
    expect([shares.nextLevel(me), shares.nextLevel({ ...me, user: 'another' })]).toEqual([1, 0]);
    leave(chats, second);
    expect(waitedFor('openai')).toBe(0);
    open({}, { id });
    expect(waitedFor('openai')).toBe(1);
    end(id);
    end(id);
    expect([waitedFor('openai'), shares.nextLevel(me)]).toEqual([0, 0]);
  });

  it('is passed on → it counts there, until it ends', () => {
    const requests = openMany(4);
    for (const { chat } of requests) chats.onMoved(chat.id, { provider: 'bedrock', attempt: 2 });
    chats.onMoved('chat 4', { provider: 'bedrock', attempt: 2 });
    chats.onMoved('chat 4', { provider: 'bedrock', model: 'another', attempt: 3 });
    chats.onMoved('unknown', { provider: 'bedrock', attempt: 2 });
    expect([shares.nextLevel(me), shares.nextLevel(elsewhere)]).toEqual([0, 3]);
    expect([waitedFor('openai'), waitedFor('bedrock')]).toEqual([0, 4]);
    // Its priority, and so its level, stays.
    expect(shares.of('bedrock').waitedFor.slice(0, 3)).toEqual([1, 1, 2]);
    endAll(requests);
    expect([shares.nextLevel(elsewhere), waitedFor('bedrock')]).toEqual([0, 0]);
  });

  it('is only read → it counts nowhere, until a request begins or joins it', () => {
    const { signal } = command();
    const deadline = Date.now() + 60_000;
    const claimed = { id: 'read', deadline, current: { provider: 'openai' }, ...stored } as const;
    chats.attach(claimed, { signal, waitUntil: deadline, link: { requestResend: () => {} } });
    chats.onMoved('read', { provider: 'bedrock', attempt: 2 });
    expect([waitedFor('openai'), waitedFor('bedrock')]).toEqual([0, 0]);
    open({}, { id: 'read' });
    expect(waitedFor('bedrock')).toBe(1);
  });
});

describe('a chat in the background', () => {
  const release = vi.fn();
  const hold = vi.fn(() => release);
  let request: AttachedRequest;

  beforeEach(() => {
    vi.useFakeTimers();
    hold.mockClear();
    release.mockClear();
    start({ maxInFlight: () => 1, bytesInFlight: { hold } });
    request = open({ bytes: 7 }, { isStored: true });
  });

  it.each<[string, () => void]>([
    ['it ends', () => end(request.chat.id)],
    ['its deadline', () => vi.advanceTimersByTime(60_000)],
    ['its job was not added', () => request.fail(new Error('down'))],
  ])('counts as outstanding and in flight, with its bytes, until %s', (_, finish) => {
    leaveBehind(request);
    expect(waitedFor('openai')).toBe(1);
    expect(() => shares.enter('me')).toThrow(limited);
    expect(hold).toHaveBeenCalledExactlyOnceWith('me', 7);
    expect(release).not.toHaveBeenCalled();
    finish();
    expect(waitedFor('openai')).toBe(0);
    expect(release).toHaveBeenCalledOnce();
    // Had it been given back twice, two would fit.
    const place = shares.enter('me');
    expect(() => shares.enter('me')).toThrow(limited);
    place[Symbol.dispose]();
  });

  it('is left by several requests → it counts once, and beside those that come to it', () => {
    const second = open({}, { id: request.chat.id });
    leaveBehind(request);
    leaveBehind(second);
    expect(hold).toHaveBeenCalledOnce();
    const third = open({}, { id: request.chat.id });
    leave(chats, third);
    expect([release.mock.calls.length, waitedFor('openai')]).toEqual([0, 1]);
    end(request.chat.id);
    expect(release).toHaveBeenCalledOnce();
    shares.enter('me')[Symbol.dispose]();
  });

  it('is followed by one request until its deadline, then by another -> it counts once, and not after its end', () => {
    const second = open({ bytes: 7 }, { id: request.chat.id });
    leaveBehind(request);
    vi.advanceTimersByTime(60_000);
    leaveBehind(second);
    expect(hold.mock.calls.length - release.mock.calls.length).toBe(1);
    end(request.chat.id);
    expect(release).toHaveBeenCalledTimes(hold.mock.calls.length);
    shares.enter('me')[Symbol.dispose]();
  });

  it('is not stored -> its bytes count until its job has ended, but it is neither outstanding nor in flight', () => {
    end(request.chat.id);
    const left = open({ bytes: 9 });
    leaveBehind(left);
    expect(chats.find(left.chat.id)).toBeDefined();
    expect(hold).toHaveBeenCalledExactlyOnceWith('me', 9);
    shares.enter('me')[Symbol.dispose]();
    chats.onMoved(left.chat.id, { provider: 'bedrock', attempt: 2 });
    expect([waitedFor('openai'), waitedFor('bedrock'), release.mock.calls.length]).toEqual([0, 0, 0]);
    end(left.chat.id);
    expect(release).toHaveBeenCalledOnce();
  });
});

describe('enter', () => {
  it('is for so many requests at once -> the next one may retry after a second, or when one has ended', () => {
    let maxInFlight: number | undefined = 2;
    start({ maxInFlight: () => maxInFlight });
    shares.enter('me');
    const place = shares.enter('me');
    const facts = expect.objectContaining({ retryAfterMs: 1000 });
    const isRefused = () =>
      expect(() => shares.enter('me')).toThrow(expect.objectContaining({ code: 'rate_limited', facts }));
    isRefused();
    shares.enter('another');
    place[Symbol.dispose]();
    // Had the one that was refused given its place back too, two more would fit beside the one that stays.
    shares.enter('me');
    isRefused();
    // Their number changes with the fleet.
    maxInFlight = undefined;
    shares.enter('me');
  });

  it.each([
    [undefined, undefined],
    [0, 100],
    [10, 100],
    [11, 110],
  ])('allows, where %s jobs run at once, %s requests unless it is configured', (places, expected) => {
    expect(maxInFlightOf(places)).toBe(expected);
  });
});

describe('joinStream', () => {
  it('is for twenty chats at once that other requests have begun -> the next one is refused', () => {
    const detail = 'This user reads too many stored chats at once.';
    const facts = expect.objectContaining({ detail, retryAfterMs: 1000 });
    const places = Array.from({ length: 20 }, () => shares.enter('me'));
    for (const place of places) place.joinStream();
    const isRefused = () => {
      const place = shares.enter('me');
      expect(() => place.joinStream()).toThrow(expect.objectContaining({ code: 'rate_limited', facts }));
      // It gives back nothing that it does not have.
      place[Symbol.dispose]();
    };
    isRefused();
    isRefused();
    shares.enter('another').joinStream();
    places[0]?.[Symbol.dispose]();
    shares.enter('me').joinStream();
    isRefused();
  });
});

describe('the rates of a user', () => {
  it.each<['consume' | 'consumeJoin', Options, number]>([
    ['consume', { maxPerMinute: 3 }, 60_000],
    ['consumeJoin', { maxJoins: 3 }, 10_000],
  ])(
    '%s: %o in %d ms -> the next one is told when it may come, and fits then',
    async (consume, limits, windowMs) => {
      vi.useFakeTimers();
      start(limits);
      for (let n = 0; n < 3; n += 1) await shares[consume]('me');
      for (const passedMs of [0, windowMs - 1]) {
        vi.advanceTimersByTime(passedMs);
        const facts = { retryAfterMs: windowMs - passedMs };
        await expect(shares[consume]('me')).rejects.toMatchObject({ code: 'rate_limited', facts });
      }
      await shares[consume]('another');
      vi.advanceTimersByTime(1);
      await shares[consume]('me');
    },
  );

  it('admitReader: a reader counts towards both', async () => {
    start({ maxPerMinute: 2, maxJoins: 2 });
    await shares.admitReader('me');
    await shares.consumeJoin('me');
    await expect(shares.admitReader('me')).rejects.toEqual(limited);
    await shares.consume('me');
    await expect(shares.consume('me')).rejects.toEqual(limited);
  });
});
