import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AttachedRequest } from '../../../api/chat/attached-request.js';
import type { ChatCommand, StoreOptions } from '../../../api/chat/chat-command.js';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { ChatRecorder } from '../../../api/ledger/chat-recorder.js';
import type { EndedChats } from '../../../api/ledger/ended-chats.js';
import type { RequestCode } from '../../../shared/contracts/ledger.js';
import type { Attempt } from '../../../shared/protocol/attempts.js';
import { decodeOrigin } from '../../../shared/protocol/entries.js';
import { brokenOutcome, givenUpOutcome, type Outcome } from '../../../shared/protocol/outcome.js';
import { command as commandOf, writeContent } from '../../support/attached.js';
import { promptCanary as canary } from '../../support/canaries.js';
import { openTestLedger } from '../../support/entries.js';
import { countOwnTimers } from '../../support/own-timers.js';
import { createRecordingLog } from '../../support/recording-log.js';

let chats: LiveChats;
let ledger: ReturnType<typeof openTestLedger>;
/** The chats that are counted. */
let counted: object[];
let lines: object[];
/** Codes of the chats whose callers waited for their end. */
let awaited: string[];
const command = (own: Partial<ChatCommand> = {}): ChatCommand =>
  commandOf({
    ...{
      requestId: 'id',
      user: 'user id',
      asker: { name: 'anna', api: 'chat' },
      provider: 'openai',
      model: 'gpt',
    },
    written: writeContent({ turns: [{ role: 'user', content: canary }] }),
    ...{ elapsedMs: 100, ...own },
  });
const times = { queueMs: 300, providerMs: 2000 };
const ok: Outcome = { kind: 'ok', text: canary, model: 'gpt-4', ...times };
/** Until the deadline of a chat. */
const forMs = 60_000;

let ownTimers: () => number;
beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] });
  ownTimers = countOwnTimers('api/chat');
  [counted, awaited] = [[], []];
  ledger = openTestLedger();
  chats = new LiveChats();
  const logged = createRecordingLog();
  lines = logged.lines;
  const record: EndedChats['record'] = ({ code, attempts }) => {
    awaited.push(code);
    counted.push(...attempts);
  };
  chats.listen(new ChatRecorder({ ledger, ended: { record }, log: logged.log, now: Date.now }));
});
afterEach(() => {
  // Those of the limits of entries.
  vi.advanceTimersByTime(1001);
  expect([chats.all(), ownTimers()]).toEqual([[], 0]);
  vi.useRealTimers();
});

interface Asked extends Partial<ChatCommand> {
  isStored?: boolean;
  current?: Partial<Attempt>;
}

/** Attaches a request to the chat `id`. */
function request({ isStored = false, current, ...own }: Asked = {}): AttachedRequest {
  const asked = command(own);
  const { signal, provider, model, elapsedMs = 0 } = asked;
  const deadline = Date.now() + forMs;
  return chats.attach(
    {
      ...{ id: 'id', deadline, current: { provider, ...(model && { model }), ...current } },
      ...(isStored && { expiresAt: deadline + forMs }),
    },
    { signal, waitUntil: deadline, link: { requestResend: () => undefined } },
    { command: asked, level: 0, startBy: deadline, receivedAt: performance.now() - elapsedMs },
  );
}
const settle = (outcome: Outcome) => chats.onOutcome('id', outcome);
/** It fails, and its chat does not go on for it. */
const fail = (one: AttachedRequest, code: RequestCode = 'timeout') =>
  chats.leave(one, code, { goesOn: false });
/** Its caller leaves, or does not wait; the chat goes on. */
const leave = (one: AttachedRequest, code: RequestCode = 'timeout') =>
  chats.leave(one, code, { goesOn: true });

/** Queued 150 ms after its request came, and over three seconds later, without an outcome of a worker. */
function watch(outcome: Outcome | undefined, own: Asked = {}): void {
  const one = request({ ...own, elapsedMs: 150 });
  vi.advanceTimersByTime(3000);
  if (outcome) settle(outcome);
  else leave(one);
  vi.advanceTimersByTime(1000);
}

describe('a chat that', () => {
  const providerError = { status: 400, type: 'invalid_request_error' };
  const failed = { kind: 'failed', ...times } as const;
  const passedOver = [{ provider: 'bedrock', code: 'overloaded', retryable: true, queueMs: 0 } as const];
  const left = { kind: 'left', chat: 'id' } as const;
  it.each<[string, Outcome | undefined, recorded: object[], attempts: object[], own?: Asked]>([
    ['answered', ok, [], [{ provider: 'openai', model: 'gpt-4', code: 'ok' }]],
    ['cut', { ...ok, kind: 'truncated' }, [], [{ code: 'ok' }]],
    ['withheld', { kind: 'blocked', ...times }, [], [{ code: 'content_blocked' }]],
    ['cancelled', { kind: 'cancelled', ...times }, [{ ...left, code: 'cancelled' }], []],
    ['given up', givenUpOutcome, [{ ...left, code: 'internal' }], [{ code: 'internal' }]],
    ['unreadable', brokenOutcome, [{ ...left, code: 'internal' }], [{ code: 'internal' }]],
    [
      'refused by the provider',
      { ...failed, code: 'provider_rejected', retryable: false, providerError },
      [],
      [{ provider: 'openai', model: 'gpt', code: 'provider_rejected', providerError }],
    ],
    [
      'too late',
      undefined,
      [{ ...left, code: 'timeout', addedAt: 999_850, endedAt: 1_003_000 }],
      [{ code: 'timeout' }],
    ],
    [
      'too late after another attempt',
      undefined,
      [{ ...left, code: 'timeout' }],
      [
        { provider: 'bedrock', code: 'overloaded' },
        { provider: 'openai', model: 'gpt', code: 'timeout' },
      ],
      { current: { earlier: passedOver } },
    ],
    [
      'answered by a model with a long name',
      { ...ok, model: 'x'.repeat(1000) },
      [],
      [{ model: 'x'.repeat(200) }],
    ],
  ])('was %s -> is recorded only where no worker says it', (_, outcome, recorded, attempts, own) => {
    watch(outcome, own);
    expect(ledger.entries).toMatchObject(recorded);
    expect(counted).toMatchObject(attempts);
    expect(JSON.stringify(ledger.entries)).not.toContain(canary);
  });

  it('has failed -> is logged, with the names of models that were checked alone', () => {
    watch({ ...failed, code: 'provider_error', retryable: true });
    watch(ok);
    chats.refuse(command({ model: canary }), { code: 'invalid_request', receivedAt: performance.now() });
    const names = { requestId: 'id', user: 'user id', userName: 'anna', provider: 'openai' };
    expect(lines).toMatchObject([
      { ...names, code: 'provider_error', model: 'gpt', attempts: [{ code: 'provider_error' }] },
      { ...names, code: 'invalid_request', attempts: [] },
    ]);
    expect(JSON.stringify(lines)).not.toContain(canary);
  });

  it('was refused before it was queued -> recorded with who asked, at most twenty a second', async () => {
    const receivedAt = performance.now() - 100;
    for (let n = 0; n < 10_000; n += 1) chats.refuse(command(), { code: 'overloaded', receivedAt });
    await vi.waitFor(() => expect(ledger.entries).toHaveLength(20));
    const asked = { user: 'user id', name: 'anna', api: 'chat', provider: 'openai', model: 'gpt' };
    const at = { addedAt: 999_900, endedAt: 1_000_000 };
    expect(ledger.entries[0]).toMatchObject({ ...left, code: 'overloaded', ...at });
    expect(decodeOrigin(ledger.entries[0]?.origin ?? '')).toMatchObject(asked);
    vi.advanceTimersByTime(1001);
    chats.refuse(command(), { code: 'overloaded', receivedAt });
    await vi.waitFor(() => expect(ledger.entries).toHaveLength(21));
  });

  it('was given to another request -> that is recorded, at most twenty times a second for each user', async () => {
    const chat = { id: 'first', deadline: 5, current: { provider: 'openai' } } as const;
    for (const user of ['one', 'two'])
      for (let n = 0; n < 30; n += 1) chats.join(command({ requestId: `${n}`, user }), chat);
    await vi.waitFor(() => expect(ledger.entries).toHaveLength(40));
    expect(ledger.entries[0]).toMatchObject({ kind: 'joined', chat: '0', joins: 'first' });
  });

  type Step = (requests: AttachedRequest[]) => unknown;
  const comes =
    (own?: Asked): Step =>
    (requests) =>
      requests.push(request(own));
  const ms =
    (time: number): Step =>
    () =>
      vi.advanceTimersByTime(time);
  /** A step of one of the requests. */
  const withOne =
    (work: (one: AttachedRequest) => void, place = 0): Step =>
    (requests) =>
      work(requests[place] ?? expect.unreachable());
  const leaves = (place: number, code?: RequestCode) => withOne((one) => leave(one, code), place);
  const fails = (place: number) => withOne((one) => fail(one, 'queue_unavailable'), place);
  const isNotAdded = (place: number) => withOne((one) => one.fail(new Error('not added')), place);
  const ends: Step = () => settle(ok);
  const isCut: Step = () => settle({ kind: 'cancelled', queueMs: 300, providerMs: 1700 });
  const isOpen: Step = () => expect(ledger.entries).toEqual([]);
  const first = comes({ isStored: true });
  const another = comes({ isStored: true, requestId: 'another', elapsedMs: 0 });
  const goesOn = [first, ms(1000), leaves(0, 'cancelled'), ms(1000), isOpen];
  const at = (ms: number) => ({ addedAt: 999_900, endedAt: 1_000_000 + ms });

  it.each<[string, Step[], recorded: object[]]>([
    // When its request left, and not when its worker was done.
    [
      'is left',
      [comes(), ms(2000), leaves(0, 'cancelled'), ms(200), isOpen, isCut],
      [{ code: 'cancelled', ...at(2000) }],
    ],
    ['is late', [comes(), ms(2000), leaves(0), ms(200), isOpen, isCut], [{ code: 'timeout', ...at(2000) }]],
    [
      'is left, and of whose worker nothing is heard for a second',
      [comes(), ms(2000), leaves(0), ms(999), isOpen, ms(1)],
      [{ code: 'timeout', ...at(2000) }],
    ],
    ['goes on alone, and ends', [...goesOn, ends], []],
    ['goes on until its deadline', [...goesOn, ms(58_000)], [{ code: 'timeout', ...at(60_000) }]],
    ['goes on, not added', [...goesOn, isNotAdded(0)], [{ code: 'queue_unavailable', ...at(2000) }]],
    ['is joined by another request', [first, ms(1000), another, ms(1000), ends], []],
    ['is left by all that joined it', [first, another, leaves(0), leaves(1), isOpen, ends], []],
    [
      'has ended before others come, which fail',
      [first, ends, first, first, fails(1), fails(2)],
      [{ code: 'queue_unavailable' }],
    ],
  ])('%s -> is recorded at most once', (_, steps, recorded) => {
    const requests: AttachedRequest[] = [];
    for (const step of steps) step(requests);
    expect(ledger.entries).toMatchObject(recorded);
  });

  const asynchronous = comes({ isStored: true, storeOptions: { isAsync: true } as StoreOptions });
  const rejected: Step = () => settle({ ...failed, code: 'provider_rejected', retryable: false });
  it.each<[string, Step[], counted: string[]]>([
    ['ends', [comes(), ends], ['ok']],
    ['fails', [comes(), rejected], ['provider_rejected']],
    ['is late', [comes(), ms(2000), leaves(0), isCut], ['timeout']],
    ['is late, and of whose worker nothing is heard', [comes(), leaves(0), ms(1000)], ['timeout']],
    ['is left', [comes(), ms(2000), leaves(0, 'cancelled'), isCut], []],
    ['is stored and ends', [first, ends], ['ok']],
    ['is stored and late', [first, ms(59_999), leaves(0), ms(1)], ['timeout']],
    ['is stored and ends after its caller has left', [...goesOn, ends], []],
    ['is stored, and late after its caller has left', [first, leaves(0, 'cancelled'), ms(60_000)], []],
    ['is stored, and ends after its caller has waited', [first, leaves(0), ms(1000), ends], []],
    ['is stored, and nobody waits for it', [asynchronous, leaves(0), ms(1000), ends], []],
    ['is stored, and late without anyone who waits', [asynchronous, leaves(0), ms(60_000)], []],
    ['cannot be added', [comes(), fails(0)], ['queue_unavailable']],
  ])('%s -> counts where its caller waited until then', (_, steps, counted) => {
    const requests: AttachedRequest[] = [];
    for (const step of steps) step(requests);
    expect(awaited).toEqual(counted);
  });

  it('was refused -> counts unless its caller has left', () => {
    for (const code of ['overloaded', 'cancelled', 'timeout'] as const)
      chats.refuse(command(), { code, receivedAt: performance.now() });
    expect(awaited).toEqual(['overloaded', 'timeout']);
  });

  it('is only read here -> its end is not recorded', () => {
    const { signal } = command();
    const deadline = Date.now() + forMs;
    const claimed = { id: 'id', deadline, expiresAt: deadline, current: { provider: 'openai' } } as const;
    const options = { signal, waitUntil: deadline, link: { requestResend: () => undefined } };
    fail(chats.attach(claimed, options));
    chats.attach(claimed, options);
    settle(ok);
    expect([ledger.entries, awaited]).toEqual([[], []]);
  });
});
