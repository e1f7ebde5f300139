import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Turn } from '../../../shared/conversation.js';
import { Failure, failureCodes } from '../../../shared/failures.js';
import { givenFields } from '../../../shared/given-fields.js';
import type { Call, PreparedCall } from '../../../workers/job/call.js';
import { prepare } from '../../../workers/job/call-chain.js';
import { ModelNotes, RetryBudget } from '../../../workers/job/model-notes.js';
import type { ModelRequest } from '../../../workers/job/model-request.js';
import { withOneRetry } from '../../../workers/job/retry.js';
import { classifyError } from '../../../workers/providers/error-classification.js';
import { admittedCall, callOf } from '../../support/calls.js';
import { openSlot } from '../../support/gate.js';

interface Limits {
  inMs?: number;
  budget?: { earn(): void; spend(): boolean };
  /** How long the model is limited, at each look; the last one for good. */
  cooldownMs?: number[];
  hasFallback?: boolean;
  attempt?: number;
  isStrict?: true;
  hasBegun?: boolean;
  request?: ModelRequest;
  notes?: ModelNotes;
  user?: string;
  /** How long an attempt takes. */
  tookMs?: number;
}

/** The outcome of the attempts: their requests, the pauses between them, and how often the slot was parked. */
interface Ran {
  end: unknown;
  asked: { request: ModelRequest; ignored: readonly string[] | undefined }[];
  pauses: number[];
  parked: number;
}

/** Runs attempts that end as listed, the last one for good, by a clock that only they and pauses move. */
async function run(endings: unknown[], { inMs = 60_000, tookMs = 0, ...limits }: Limits = {}): Promise<Ran> {
  const ran: Ran = { end: undefined, asked: [], pauses: [], parked: 0 };
  let nowMs = 1_000_000;
  const park = () => {
    ran.parked += 1;
  };
  const attempt = async ({ kind, sent: request, progress: { ignored } }: PreparedCall) => {
    expect(kind === 'first').toBe(ran.asked.length === 0);
    const ending = endings[Math.min(ran.asked.length, endings.length - 1)];
    ran.asked.push({ request, ignored });
    nowMs += tookMs;
    if (ending !== 'done') throw ending;
    return 'done';
  };
  const { cooldownMs = [0], budget = new RetryBudget(), notes = new ModelNotes(), ...own } = limits;
  const gate = { heldMs: () => (cooldownMs.length > 1 ? cooldownMs.shift() : cooldownMs[0]) ?? 0 };
  const noteOf = (model: string) => ({ hints: notes.of(model).hints, budget });
  const slot = { ...openSlot(), isParked: false, park };
  const call = callOf({ ...own, deadline: nowMs + inMs, now: () => nowMs, slot });
  const sleep = async (ms: number) => {
    ran.pauses.push(ms);
    nowMs += ms;
  };
  const deps = { gate, notes: { find: noteOf, of: noteOf }, sleep };
  const make = (each: Call) => prepare({ ...each, pass: admittedCall() }, deps, attempt);
  ran.end = await withOneRetry(call, deps, make).catch((error) => error);
  return ran;
}

const failed = () => new Failure('provider_error');
const limited = (retryAfterMs: number) => new Failure('provider_rate_limited', { retryAfterMs });
const noBudget = { earn: () => {}, spend: () => expect.unreachable() };

let random = 0;
beforeEach(() => {
  random = 0;
  const spy = vi.spyOn(Math, 'random').mockImplementation(() => random);
  return () => spy.mockRestore();
});

const refusal = (text: string, param?: string) =>
  classifyError(new Error(text), { status: 400, text, param });
const hint = refusal('`temperature` is deprecated for this model.');
const effort = refusal("To use function tools, set reasoning_effort to 'none'.", 'reasoning_effort');
const quotes = refusal("Error while downloading https://a.example/set reasoning_effort to 'none'.");
const signature = refusal('Invalid `signature` in `thinking` block');
const requestOf = (parameters: ModelRequest['parameters'], own: Partial<ModelRequest> = {}) => ({
  ...{ model: 'm', maxOutputTokens: 1, turns: [], parameters },
  ...own,
});
const tuned = requestOf({ temperature: 0.5, topP: 1, stop: ['x'], parallelToolCalls: false });
const tools = [{ name: 'f' }];

describe('withOneRetry', () => {
  it.each<[string, Failure, Limits, number[], number]>([
    ['nothing more', failed(), {}, [100], 0],
    ['that it need not wait', limited(0), {}, [100], 0],
    ['how long to wait', limited(600), {}, [600], 1],
    ['nothing, and the model is limited', failed(), { cooldownMs: [300, 0] }, [300], 0],
    [
      'nothing, and the limit becomes longer meanwhile',
      failed(),
      { cooldownMs: [500, 400, 0] },
      [500, 400],
      0,
    ],
  ])('a failure that may pass, whose provider says %s -> one retry after that pause', async (...row) => {
    const [, failure, limits, pauses, parked] = row;
    const last = failed();
    expect(await run([failure, 'done'], limits)).toMatchObject({ end: 'done', pauses, parked });
    expect((await run([failure, last])).end).toBe(last);
  });

  it('a failure that may pass -> the pause is a random fraction of a second', async () => {
    random = 0.5;
    expect((await run([failed(), 'done'])).pauses).toEqual([250]);
    expect((await run([limited(600), 'done'])).pauses).toEqual([650]);
  });

  const passing = ['provider_error', 'provider_rate_limited'];
  it.each<[string, unknown, Limits]>([
    ...failureCodes
      .filter((code) => !passing.includes(code))
      .map((code): [string, unknown, Limits] => [code, new Failure(code, { retryable: true }), {}]),
    ['a failure that does not pass', new Failure('provider_error', { retryable: false }), {}],
    ['an unexpected error', new TypeError('x'), {}],
    ['a provider that asks for more time than there is', limited(59_751), {}],
    ['a near deadline', failed(), { inMs: 349 }],
    ['a deadline that has come', failed(), { inMs: 0 }],
    ['a cooldown that is longer than the time', failed(), { inMs: 5000, cooldownMs: [4751] }],
    ['a later attempt of a fallback', failed(), { attempt: 2 }],
    ['a reply that has begun', failed(), { hasBegun: true }],
    // Those of a fallback: what is left for it.
    ['a fallback that would wait for three seconds', limited(3001), { hasFallback: true }],
    ['a fallback with less than a third of the time', limited(700), { hasFallback: true, inMs: 1000 }],
    ['a fallback with less than half', failed(), { hasFallback: true, inMs: 55_000, tookMs: 30_000 }],
    // A refusal that needs no second call, or gets none.
    ['a request without hints', hint, { request: requestOf({ stop: ['x'] }) }],
    ['a reply that has begun, and a refused hint', hint, { request: tuned, hasBegun: true }],
    ['no signature to leave out', signature, { request: tuned }],
    [
      'what the caller has to mend',
      refusal('tool_choice: not supported for this model.'),
      { request: tuned },
    ],
    ['reasoning that is off', effort, { request: requestOf({ tools, reasoningEffort: 'none', seed: 1 }) }],
    ['reasoning beside tools, of which there are none', effort, { request: requestOf({ seed: 1 }) }],
    ['a hint that was not sent', hint, { request: requestOf({ seed: 1 }) }],
    ['a text that quotes a refusal', quotes, { request: requestOf({ tools, ...tuned.parameters }) }],
  ])('%s -> no retry, and nothing is spent', async (_, error, limits) => {
    const { end, asked } = await run([error, 'done'], { ...limits, budget: noBudget });
    expect([end, asked.length]).toEqual([error, 1]);
  });

  it.each<[string, Failure, Limits]>([
    ['just enough time', failed(), { inMs: 350 }],
    ['just enough time for a fallback', limited(600), { hasFallback: true, inMs: 1000 }],
    ['half of the time left for a fallback', failed(), { hasFallback: true, inMs: 55_000, tookMs: 15_000 }],
    ['little time, and no fallback', failed(), { inMs: 55_000, tookMs: 30_000 }],
  ])('%s -> a retry', async (_, failure, limits) => {
    expect((await run([failure, 'done'], limits)).end).toBe('done');
  });

  const again = failed();
  const unavailable = new Failure('provider_unavailable');
  it.each<[string, unknown[], Limits, end: unknown, calls: number]>([
    ['a cooldown that grows beyond the time in the pause', [again], { cooldownMs: [0, 59_900] }, again, 1],
    ['a retry that the breaker refuses', [again, unavailable], {}, again, 2],
    ['a call without its refused hints that fails', [hint, again, 'done'], { request: tuned }, again, 2],
    ['a call without them that is refused', [hint, unavailable, 'done'], { request: tuned }, unavailable, 2],
  ])('%s -> the end says most, and there is no other call', async (_, endings, limits, last, calls) => {
    const { end, asked } = await run(endings, limits);
    expect(end).toBe(last);
    expect(asked).toHaveLength(calls);
  });

  it('a retry -> spends one of the budget, without which there is none', async () => {
    const budget = { earn: vi.fn(), spend: vi.fn(() => true) };
    expect((await run([failed(), 'done'], { budget })).asked).toHaveLength(2);
    expect([budget.earn.mock.calls.length, budget.spend.mock.calls.length]).toEqual([1, 1]);
    expect((await run([failed(), 'done'], { budget: { ...budget, spend: () => false } })).asked).toHaveLength(
      1,
    );
  });

  it('a stop during the pause -> ends with its reason', async () => {
    const stopping = new AbortController();
    const reason = new Failure('provider_unavailable');
    const attempt = vi.fn(async () => {
      setImmediate(() => stopping.abort(reason));
      throw limited(30_000);
    });
    const deps = { gate: { heldMs: () => 0 }, notes: new ModelNotes() };
    const call = callOf({ stop: stopping.signal, deadline: Infinity });
    const ended = withOneRetry(call, deps, (each) =>
      prepare({ ...each, pass: admittedCall() }, deps, attempt),
    );
    await expect(ended).rejects.toBe(reason);
    expect(attempt).toHaveBeenCalledOnce();
  });

  it('a call that was not made, because it may not begin -> no retry, and nothing is spent', async () => {
    const refused = limited(0);
    const noteOf = () => ({ hints: new ModelNotes().of('m').hints, budget: noBudget });
    const deps = { gate: { heldMs: () => 0 }, notes: { find: noteOf, of: noteOf } };
    const refuse = vi.fn(() => Promise.reject(refused));
    await expect(withOneRetry(callOf(), deps, refuse)).rejects.toBe(refused);
    expect(refuse).toHaveBeenCalledOnce();
  });
});

describe('withOneRetry of a refused hint', () => {
  /** The request that the notes have narrowed, and the fields that were left out. */
  const askedWith = async (request: ModelRequest, notes: ModelNotes) => {
    const [asked] = (await run(['done'], { request, notes })).asked;
    return [asked?.request.parameters, asked?.ignored];
  };

  it.each<[string, Limits]>([
    ['without budget, in a cooldown', { cooldownMs: [60_000] }],
    ['at a provider of a fallback', { attempt: 2 }],
    ['with a fallback behind it, and little time', { hasFallback: true, inMs: 200 }],
  ])('a hint that is refused %s -> one more call at once without hints', async (_, limits) => {
    const { end, asked, pauses, parked } = await run([hint, 'done'], {
      ...{ request: tuned, budget: noBudget },
      ...limits,
    });
    expect([end, pauses, parked]).toEqual(['done', [], 0]);
    expect(asked.map(({ request }) => request.parameters)).toEqual([tuned.parameters, { stop: ['x'] }]);
    expect(asked.map(({ ignored }) => ignored)).toEqual([undefined, ['temperature', 'parallelToolCalls']]);
  });

  it('a hint that is refused in the retry -> ends as what may pass, and is not remembered', async () => {
    const first = failed();
    const notes = new ModelNotes();
    const afterFailure = await run([first, hint, 'done'], { request: tuned, notes });
    expect([afterFailure.end, afterFailure.asked.length]).toEqual([first, 2]);
    expect((await askedWith(tuned, notes))[1]).toBeUndefined();
    const request = requestOf({ temperature: 0.5, tools });
    const afterHint = await run([hint, effort, 'done'], { request });
    expect([afterHint.end, afterHint.asked.length]).toMatchObject([
      { code: 'provider_error', retryable: true },
      2,
    ]);
  });

  it('a chat that must not be asked without its hints -> fails, also when the refusal is known', async () => {
    const notes = new ModelNotes();
    await run([hint, 'done'], { request: tuned, notes });
    const { end, asked } = await run([hint, 'done'], { request: tuned, notes, isStrict: true });
    expect([end, asked.map(({ ignored }) => ignored)]).toEqual([hint, [undefined]]);
  });

  it.each([
    ['no effort', {}, undefined],
    ['an effort', { reasoningEffort: 'high' as const }, ['reasoningEffort']],
  ])('a model that does not reason with tools, and %s -> asked not to reason', async (_, own, ignored) => {
    const { end, asked } = await run([effort, 'done'], { request: requestOf({ tools, ...own }) });
    expect(end).toBe('done');
    expect(asked[1]).toMatchObject({ request: { parameters: { tools, reasoningEffort: 'none' } }, ignored });
  });

  it('a signature that is refused -> the opaque parts of the conversation are left out, this once', async () => {
    const called: Turn = {
      role: 'assistant',
      content: [
        { type: 'opaque', provider: 'anthropic', data: 's' },
        { type: 'tool_call', id: 'a', name: 'f', arguments: '{}' },
      ],
    };
    const asking: Turn = { role: 'user', content: 'Hello' };
    const notes = new ModelNotes();
    const request = requestOf({ temperature: 0.5 }, { turns: [asking, called] });
    const { end, asked } = await run([signature, 'done'], { request, notes });
    expect(end).toBe('done');
    expect(asked[1]).toMatchObject({
      request: { parameters: { temperature: 0.5 }, turns: [asking, { content: [{ type: 'tool_call' }] }] },
      ignored: undefined,
    });
    const [later] = (await run(['done'], { request, notes })).asked;
    expect(later?.request.turns).toEqual(request.turns);
  });

  it('a refused hint -> is remembered for an hour, for this model and this value alone', async () => {
    let now = 1;
    const notes = new ModelNotes({ now: () => now });
    await run([hint, 'done'], { request: tuned, notes });
    now += 3_600_000;
    expect(await askedWith(tuned, notes)).toEqual([
      { topP: 1, stop: ['x'], parallelToolCalls: false },
      ['temperature'],
    ]);
    const warmer = requestOf({ ...tuned.parameters, temperature: 0.6 });
    for (const request of [{ ...tuned, model: 'other' }, warmer])
      expect(await askedWith(request, notes)).toEqual([request.parameters, undefined]);
    now += 1;
    expect(await askedWith(tuned, notes)).toEqual([tuned.parameters, undefined]);
  });

  it('a refused value -> neither other hints of the request nor other values are left out', async () => {
    const notes = new ModelNotes();
    const odd = requestOf({ temperature: 0.5, reasoningEffort: 'max' });
    await run([refusal("'reasoning_effort' is not supported."), 'done'], { request: odd, notes });
    const usual = { temperature: 0.5, reasoningEffort: 'high' } as const;
    expect((await askedWith(requestOf(usual), notes))[0]).toEqual(usual);
    expect((await askedWith(odd, notes))[0]).toEqual({ temperature: 0.5 });
  });

  it('a hint that is refused beside an effort -> is sent beside others, which the model may take it with', async () => {
    const notes = new ModelNotes();
    const high = { temperature: 0.5, reasoningEffort: 'high' } as const;
    await run([hint, 'done'], { request: requestOf(high), notes });
    for (const reasoningEffort of ['none', undefined] as const) {
      const other = { temperature: 0.5, ...givenFields({ reasoningEffort }) };
      expect((await askedWith(requestOf(other), notes))[0]).toEqual(other);
    }
    expect((await askedWith(requestOf(high), notes))[0]).toEqual({ reasoningEffort: 'high' });
    // The effort that is sent counts, too: here the model must not reason beside tools, nor take any temperature then.
    await run([effort, 'done'], { request: requestOf({ tools }), notes });
    const besideTools = requestOf({ tools, temperature: 0.7, reasoningEffort: 'low' });
    const { asked } = await run([hint, 'done'], { request: besideTools, notes });
    expect(asked[0]?.request.parameters).toEqual({ tools, temperature: 0.7, reasoningEffort: 'none' });
    expect((await askedWith(besideTools, notes))[0]).toEqual({ tools, reasoningEffort: 'none' });
    const low = { temperature: 0.7, reasoningEffort: 'low' } as const;
    expect((await askedWith(requestOf(low), notes))[0]).toEqual(low);
  });

  it('reasoning that is refused with tools -> is left out of requests with tools alone', async () => {
    const notes = new ModelNotes();
    await run([effort, 'done'], { request: requestOf({ tools }), notes });
    const high = { reasoningEffort: 'high' } as const;
    expect(await askedWith(requestOf(high), notes)).toEqual([high, undefined]);
    const withTools = { tools, verbosity: 'low' } as const;
    expect(await askedWith(requestOf(withTools), notes)).toEqual([
      { ...withTools, reasoningEffort: 'none' },
      undefined,
    ]);
  });
});

describe('the notes about refusals', () => {
  const sent = requestOf({ tools, temperature: 0.5, reasoningEffort: 'high' });
  const withoutEffort = { ...sent.parameters, reasoningEffort: 'none' };
  const rejected = () => classifyError(new Error('x'), { status: 400, text: 'no', param: 'messages' });
  /** The parameters that the first call of this user is made with. */
  const asksWith = async (user: string, notes: ModelNotes, request = sent) =>
    (await run(['done'], { request, notes, user })).asked[0]?.request.parameters;
  /** The user's call is refused, and its repetition ends so. */
  const meet = (error: Failure, user: string, notes: ModelNotes, end: unknown = 'done') =>
    run([error, end], { request: sent, notes, user });

  it.each<[string, Failure]>([
    ['is refused otherwise', rejected()],
    ['is refused again', effort],
    ['fails', failed()],
    ['is limited', limited(1)],
    ['gets no answer in time', new Failure('provider_timeout')],
    ['is blocked', new Failure('content_blocked')],
  ])('a repetition that %s -> nothing is remembered, not for the user either', async (_, end) => {
    const notes = new ModelNotes();
    for (const error of [hint, effort]) await meet(error, 'M', notes, end);
    for (const user of ['M', 'V']) expect(await asksWith(user, notes)).toEqual(sent.parameters);
  });

  it.each([
    ['a hint', hint, { tools, reasoningEffort: 'high' }],
    ['an effort beside tools', effort, withoutEffort],
  ])(
    '%s that one user has met, however often -> counts for that user; of two, for all',
    async (_, error, without) => {
      const notes = new ModelNotes();
      for (let n = 0; n < 3; n += 1) await meet(error, 'M', notes);
      expect(await asksWith('M', notes)).toEqual(without);
      expect(await asksWith('V', notes)).toEqual(sent.parameters);
      await meet(error, 'V', notes);
      for (const user of ['M', 'V', 'W']) expect(await asksWith(user, notes)).toEqual(without);
    },
  );

  it.each([
    ['a hint', hint],
    ['an effort beside tools', effort],
  ])(
    '%s that counts, and a call without it that is refused -> the call as it was asked for',
    async (_, error) => {
      const notes = new ModelNotes();
      for (const user of ['M', 'N']) await meet(error, user, notes);
      const refused = await run([rejected(), 'done'], { request: sent, notes, user: 'V' });
      expect([refused.end, refused.pauses]).toEqual(['done', []]);
      expect(refused.asked[0]?.request.parameters).not.toEqual(sent.parameters);
      expect(refused.asked[1]).toMatchObject({
        request: { parameters: sent.parameters },
        ignored: undefined,
      });
      for (const user of ['V', 'W']) expect(await asksWith(user, notes)).toEqual(sent.parameters);
      // The user that has met it keeps it until a call without it fails.
      expect(await asksWith('M', notes)).not.toEqual(sent.parameters);
      await run([failed(), failed()], { request: sent, notes, user: 'M' });
      expect(await asksWith('M', notes)).toEqual(sent.parameters);
    },
  );

  it('an effort that a model does not have -> the call as it was asked for, and not as one that may pass', async () => {
    const notes = new ModelNotes();
    for (const user of ['M', 'N']) await meet(effort, user, notes);
    const none = refusal("'reasoning_effort' does not support 'none' with this model.", 'reasoning_effort');
    const { end, asked } = await run([none, 'done'], { request: sent, notes, user: 'V' });
    expect([end, asked[1]?.request.parameters]).toEqual(['done', sent.parameters]);
    const last = await run([none, rejected()], { request: sent, notes, user: 'M' });
    expect(last.end).toMatchObject({ code: 'provider_rejected' });
  });

  it.each<[string, Failure]>([
    ['is limited', limited(1)],
    ['gets no answer in time', new Failure('provider_timeout')],
    ['is too long', new Failure('context_length_exceeded')],
  ])('a call without it that %s -> it still counts', async (_, end) => {
    const notes = new ModelNotes();
    await meet(hint, 'M', notes);
    await run([end, end], { request: sent, notes, user: 'M' });
    expect(await asksWith('M', notes)).not.toHaveProperty('temperature');
  });

  it('another part that is refused -> what is known stays left out, and counts', async () => {
    const notes = new ModelNotes();
    await meet(hint, 'M', notes);
    const { end, asked } = await meet(effort, 'M', notes);
    expect(end).toBe('done');
    for (const { request } of asked) expect(request.parameters).not.toHaveProperty('temperature');
    expect(await asksWith('M', notes)).toEqual({ tools, reasoningEffort: 'none' });
  });

  it.each([
    ['is refused otherwise', rejected()],
    ['fails', failed()],
  ])('a call of one user without it that %s, twice -> it still counts for all others', async (_, end) => {
    const notes = new ModelNotes();
    for (const user of ['M', 'N']) for (const error of [hint, effort]) await meet(error, user, notes);
    // One who has met it, and one who has not.
    for (const user of ['M', 'L']) await run([end, end], { request: sent, notes, user });
    expect(await asksWith('V', notes)).toEqual({ tools, reasoningEffort: 'none' });
  });

  it('a call of a user without it that is refused, and also with it -> it counts for that user as before', async () => {
    const notes = new ModelNotes();
    for (const error of [hint, effort]) await meet(error, 'V', notes);
    const { asked } = await run([rejected(), rejected()], { request: sent, notes, user: 'V' });
    expect(asked[1]?.request.parameters).toEqual(sent.parameters);
    expect(await asksWith('V', notes)).toEqual({ tools, reasoningEffort: 'none' });
  });

  it('a call that asks for no effort itself, and is answered the second time -> shows nothing', async () => {
    const notes = new ModelNotes();
    for (const user of ['M', 'N']) await meet(effort, user, notes);
    const request = requestOf({ tools, reasoningEffort: 'none' });
    await run([rejected(), 'done'], { request, notes, user: 'L' });
    expect(await asksWith('V', notes)).toEqual(withoutEffort);
  });

  it('a user who meets many values that are refused -> takes no room from what another has met', async () => {
    const notes = new ModelNotes();
    await meet(hint, 'V', notes);
    for (let n = 0; n < 200; n += 1) {
      const request = requestOf({ temperature: 1 + n / 1000 });
      await run([hint, 'done'], { request, notes, user: 'M' });
    }
    expect(await asksWith('V', notes)).not.toHaveProperty('temperature');
    const latest = requestOf({ temperature: 1.199 });
    expect(await asksWith('M', notes, latest)).not.toHaveProperty('temperature');
  });

  it('two hints that are refused together -> each alone is still sent', async () => {
    const notes = new ModelNotes();
    const both = requestOf({ temperature: 0.5, topP: 0.5 });
    const text = refusal('`temperature` and `top_p` cannot both be specified for this model.');
    for (const user of ['M', 'N']) await run([text, 'done'], { request: both, notes, user });
    for (const parameters of [{ temperature: 0.5 }, { topP: 0.5 }])
      expect(await asksWith('M', notes, requestOf(parameters))).toEqual(parameters);
  });
});
