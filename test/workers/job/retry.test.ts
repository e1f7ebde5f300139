import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure, failureCodes } from '../../../shared/failures.js';
import { givenFields } from '../../../shared/json/json.js';
import type { ParameterName } from '../../../shared/models/model-parameters.js';
import type { Call, PreparedCall } from '../../../workers/job/call.js';
import { prepare } from '../../../workers/job/call-chain.js';
import type { DeltaStream } from '../../../workers/job/delta-stream.js';
import type { ModelRequest } from '../../../workers/job/model-request.js';
import { RefusedParts } from '../../../workers/job/refused-parts.js';
import { RetryBudget, withOneRetry } from '../../../workers/job/retry.js';
import { classifyError } from '../../../workers/providers/errors/error-classification.js';
import type { ProviderReply } from '../../../workers/providers/provider.js';
import { callOf, pass } from '../../support/calls.js';
import { openStream } from '../../support/running-jobs.js';

interface Options extends NonNullable<Parameters<typeof callOf>[0]> {
  inMs?: number;
  budget?: { earn(): void; spend(): boolean };
  refused?: RefusedParts;
  /** The hints that the provider's requests have no field for. */
  ignores?: ReadonlySet<ParameterName>;
  /** How long an attempt takes. */
  tookMs?: number;
}

/**
 * Makes calls that end as listed, the last one for good, by a clock that only they and pauses move. One that is
 * `refused` is not made.
 */
async function run(endings: unknown[], { inMs = 60_000, tookMs = 0, ...options }: Options = {}) {
  const { budget = new RetryBudget(), refused = new RefusedParts(), ignores, ...own } = options;
  const asked: { request: ModelRequest; ignored: readonly string[] | undefined }[] = [];
  const pauses: number[] = [];
  let nowMs = 1_000_000;
  const attempt = async ({ kind, sent: request, progress: { ignored } }: PreparedCall) => {
    expect(kind === 'first').toBe(asked.length === 0);
    const ending = endings[Math.min(asked.length, endings.length - 1)];
    asked.push({ request, ignored });
    nowMs += tookMs;
    if (ending !== 'done') throw ending;
    return 'done' as unknown as ProviderReply;
  };
  const deps = {
    refused,
    budget,
    provider: givenFields({ ignores }),
  };
  const call = callOf({ ...own, deadline: nowMs + inMs, now: () => nowMs });
  const make = async (each: Call) => {
    if (each.kind === 'retry') {
      pauses.push(each.pauseMs);
      expect(each.patienceMs).toBeGreaterThanOrEqual(each.pauseMs);
      nowMs += each.pauseMs;
    }
    const ending = endings[asked.length];
    if (ending instanceof Refused) throw ending.error;
    return prepare({ ...each, pass }, deps, attempt);
  };
  const end = await withOneRetry(call, deps, make).catch((error) => error);
  return { end, asked, pauses };
}

/** How the gate refuses a call. */
class Refused {
  constructor(readonly error: Failure) {}
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
const choice = refusal('tool_choice: not supported for this model.');
const signature = refusal('Invalid `signature` in `thinking` block');
const include = refusal('Encrypted content is not supported with this model.', 'include');
const thinking = refusal('The reasoning_content in the thinking mode must be passed back to the API.');
const streaming = refusal('The model is unsupported for streaming.');
const limit = refusal('The maximum tokens you requested exceeds the model limit of 4096.');
const cache = refusal('tools.0.cache_control: Extra inputs are not permitted');
const rejected = refusal('no', 'messages');
const laterSystem = refusal("role 'system' is not supported on this model");
const tools = [{ name: 'f' }];
const requestOf = (parameters: ModelRequest['parameters'], turns: ModelRequest['turns'] = []) => ({
  ...{ model: 'm', maxOutputTokens: 1, turns, parameters },
});
const tuned = requestOf({ temperature: 0.5, topP: 1, stop: ['x'], parallelToolCalls: false });
const seeded = requestOf({ seed: 1 });

describe('a call that fails', () => {
  const slow = { hasFallback: true, inMs: 55_000 };
  it.each<[string, Failure, Options, pauses: number[]]>([
    ['as it may once', failed(), {}, [100]],
    ['while it thinks', failed(), { hasBegun: true }, [100]],
    ['at a provider that says 0', limited(0), {}, [100]],
    ['at a provider that says how long to wait', limited(600), {}, [600]],
    ['with just enough time', failed(), { inMs: 350 }, [100]],
    ['slowly, and without a fallback', failed(), { ...slow, hasFallback: false, tookMs: 30_000 }, [100]],
    // With a fallback a third of the time is left for it, and half after a second call like the first.
    ['with just enough time for a fallback', limited(600), { hasFallback: true, inMs: 1000 }, [600]],
    ['with half left for a fallback', failed(), { ...slow, tookMs: 15_000 }, [100]],
  ])('%s -> one more after the pause', async (_, failure, options, pauses) => {
    expect(await run([failure, 'done'], options)).toMatchObject({ end: 'done', pauses });
  });

  it('twice -> ends as the second; the pauses are a random fraction of a second', async () => {
    random = 0.5;
    const last = failed();
    expect(await run([failed(), last])).toMatchObject({ end: last, pauses: [250] });
    expect((await run([limited(600), 'done'])).pauses).toEqual([650]);
  });

  const passing = ['provider_error', 'provider_rate_limited'];
  it.each<[string, unknown, Options]>([
    ...failureCodes
      .filter((code) => !passing.includes(code))
      .map((code): [string, unknown, Options] => [code, new Failure(code, { retryable: true }), {}]),
    ['a failure that does not pass', new Failure('provider_error', { retryable: false }), {}],
    ['an unexpected error', new TypeError('x'), {}],
    ['a provider that asks for more time than there is', limited(59_751), {}],
    ['one that asks for more than a minute', limited(60_001), { inMs: 600_000 }],
    ['a near deadline', failed(), { inMs: 349 }],
    ['a later attempt of a fallback', failed(), { attempt: 2 }],
    ['a reply of which a part is shown', failed(), { isShown: true }],
    ['a fallback that would wait for three seconds', limited(3001), { hasFallback: true }],
    ['a fallback with less than a third of the time', limited(700), { hasFallback: true, inMs: 1000 }],
    ['a fallback with less than half', failed(), { ...slow, tookMs: 30_000 }],
    ['a request without hints', hint, { request: requestOf({ stop: ['x'] }) }],
    ['one of which a part is shown, and a refused hint', hint, { request: tuned, isShown: true }],
    ['no signature to leave out', signature, { request: tuned }],
    ['what the caller has to mend', choice, { request: tuned }],
    ['reasoning that is off', effort, { request: requestOf({ tools, reasoningEffort: 'none', seed: 1 }) }],
    ['reasoning beside tools, of which there are none', effort, { request: seeded }],
    ['a hint that was not sent', hint, { request: seeded }],
    ["the caller's own limit", limit, { request: seeded }],
    ['a later system text of a strict chat', laterSystem, { request: tuned, isStrict: true }],
    ['a text that quotes a refusal', quotes, { request: requestOf({ tools, ...tuned.parameters }) }],
  ])('%s -> no other, and nothing is spent', async (_, error, options) => {
    const { end, asked } = await run([error, 'done'], { ...options, budget: noBudget });
    expect([end, asked.length]).toEqual([error, 1]);
  });

  const again = failed();
  const unavailable = new Failure('provider_unavailable');
  const refused = new Refused(unavailable);
  const mayPass = { code: 'provider_error', retryable: true };
  it.each<[string, unknown[], Options, end: unknown, calls: number]>([
    ['a limit that grows beyond the time in the pause', [again, new Refused(limited(60_000))], {}, again, 1],
    ['a retry that the breaker refuses', [again, refused], {}, again, 1],
    ['a hint that is refused in the retry', [again, hint, 'done'], { request: tuned }, again, 2],
    ['a call without its hints that fails', [hint, again, 'done'], { request: tuned }, again, 2],
    ['one without them that may not begin', [hint, refused, 'done'], { request: tuned }, unavailable, 1],
    ['a second refusal', [hint, effort], { request: requestOf({ temperature: 1, tools }) }, mayPass, 2],
  ])('%s -> the end says most, and there is no other', async (_, endings, options, last, calls) => {
    const { end, asked } = await run(endings, options);
    expect(end).toMatchObject(last as object);
    expect(asked).toHaveLength(calls);
  });

  it('a retry -> spends one of the budget, without which there is none', async () => {
    const budget = { earn: vi.fn(), spend: vi.fn(() => true) };
    expect((await run([failed(), 'done'], { budget })).end).toBe('done');
    expect([budget.earn.mock.calls.length, budget.spend.mock.calls.length]).toEqual([1, 1]);
    const none = { ...budget, spend: () => false };
    expect((await run([failed(), 'done'], { budget: none })).asked).toHaveLength(1);
  });

  it('a stop during the pause -> ends with its reason', async () => {
    const reason = new Failure('provider_unavailable');
    const endings = [limited(30_000), new Refused(reason)];
    const { end, asked } = await run(endings, { stop: AbortSignal.abort(reason) });
    expect([end, asked.length]).toEqual([reason, 1]);
  });

  it('a call that was not made, because it may not begin -> no other', async () => {
    const refuse = vi.fn(() => Promise.reject(limited(0)));
    const deps = { refused: new RefusedParts(), budget: new RetryBudget() };
    await expect(withOneRetry(callOf(), deps, refuse)).rejects.toMatchObject({ facts: { retryAfterMs: 0 } });
    expect(refuse).toHaveBeenCalledOnce();
  });
});

it.each<[string, inMs: number, isStreamed: boolean, deltas?: DeltaStream]>([
  ['a whole reply that may take a minute', 60_000, false],
  ['one that may take longer', 60_001, true],
  ['one that is read as it is written', 1000, true, openStream()],
])('%s (%i ms) -> is asked for as a stream: %s', async (_, inMs, isStreamed, deltas) => {
  const now = () => 1_000_000;
  const call = {
    ...callOf({ deadline: now() + inMs, now, ...givenFields({ deltas }) }),
    pass,
  };
  const asked: unknown[] = [];
  const deps = { refused: new RefusedParts(), provider: {} };
  // The second time its model has refused that.
  for (const own of [call, { ...call, omitted: ['stream' as const] }])
    await prepare(own, deps, async ({ sent }) => {
      asked.push(sent.isStreamed);
      return {} as ProviderReply;
    });
  expect(asked).toEqual([isStreamed, false]);
});

describe('a refused part', () => {
  it.each<[string, Options]>([
    ['without budget', {}],
    ['at a provider of a fallback', { attempt: 2 }],
    ['with a fallback behind it, and little time', { hasFallback: true, inMs: 200 }],
  ])('a hint %s -> one more call at once without hints', async (_, options) => {
    const { end, asked, pauses } = await run([hint, 'done'], {
      request: tuned,
      budget: noBudget,
      ...options,
    });
    expect([end, pauses]).toEqual(['done', []]);
    expect(asked.map(({ request }) => request.parameters)).toEqual([tuned.parameters, { stop: ['x'] }]);
    expect(asked.map(({ ignored }) => ignored)).toEqual([undefined, ['temperature', 'parallelToolCalls']]);
  });

  it.each([
    ['no effort', {}, undefined],
    ['an effort', { reasoningEffort: 'high' as const }, ['reasoningEffort']],
  ])('reasoning beside tools, and %s -> asked not to reason', async (_, own, ignored) => {
    const { end, asked } = await run([effort, 'done'], { request: requestOf({ tools, ...own }) });
    expect(end).toBe('done');
    expect(asked[1]).toMatchObject({ request: { parameters: { tools, reasoningEffort: 'none' } }, ignored });
  });

  it('a signature -> the opaque parts are left out, of this request alone', async () => {
    const opaque = { type: 'opaque', provider: 'anthropic', data: 's' } as const;
    const called = { type: 'tool_call', id: 'a', name: 'f', arguments: '{}' } as const;
    const turns = [
      { role: 'user' as const, content: 'Hi' },
      { role: 'assistant' as const, content: [opaque, called] },
    ];
    const own = { refused: new RefusedParts(), user: 'M', request: requestOf({ temperature: 0.5 }, turns) };
    const { asked } = await run([signature, 'done'], own);
    expect(asked[1]).toMatchObject({
      request: { parameters: { temperature: 0.5 }, turns: [{}, { content: [called] }] },
      ignored: undefined,
    });
    expect((await run(['done'], own)).asked[0]?.request.turns).toEqual(turns);
  });
});

describe('a refused part that the adapter adds', () => {
  const partsIn = ({ asked }: Awaited<ReturnType<typeof run>>) =>
    asked.map(({ request }) => [...(request.omits ?? [])].join());
  const request = { model: 'm', turns: [], parameters: { temperature: 0.5 } };
  let refused: RefusedParts;
  beforeEach(() => {
    refused = new RefusedParts();
  });

  it.each([
    ['encryptedReasoning', include],
    ['reasoningContent', thinking],
    ['stream', streaming],
    ['cap', limit],
    ['cache', cache],
  ])(
    '%s -> once more without it at once, then never for the user, and with it for others',
    async (part, error) => {
      const ask = (user: string, ...endings: unknown[]) =>
        run(endings, { refused, user, request, budget: noBudget, isStrict: true });
      const first = await ask('M', error, 'done');
      expect([first.end, first.pauses, partsIn(first)]).toEqual(['done', [], ['', part]]);
      expect(first.asked[1]).toMatchObject({
        request: { parameters: { temperature: 0.5 } },
        ignored: undefined,
      });
      expect(partsIn(await ask('M', 'done'))).toEqual([part]);
      expect(partsIn(await run(['done'], { refused, request, user: 'M' }))).toEqual([part]);
      expect(partsIn(await run(['done'], { refused, request, user: 'V' }))).toEqual(['']);
    },
  );

  it.each<[then: string, endings: unknown[], pauses: number[], calls: number]>([
    ['a hint is refused, too', [include, hint, 'done'], [], 3],
    ['another of them is refused, too', [include, thinking, 'done'], [], 3],
    ['it is refused after a hint', [hint, include, 'done'], [], 3],
    ['it is refused in a retry', [failed(), include, 'done'], [100], 3],
    ['the call fails, and may be made again', [include, failed(), 'done'], [100], 3],
  ])('%s -> without it, and as if that had come first', async (_, endings, pauses, calls) => {
    const made = await run(endings, { refused, request, user: 'M' });
    expect([made.end, made.pauses, made.asked.length]).toEqual(['done', pauses, calls]);
    expect(made.asked.at(-1)?.request.omits?.has('encryptedReasoning')).toBe(true);
    const [next] = (await run(['done'], { refused, request, user: 'M' })).asked;
    expect(next?.request).toEqual({ ...made.asked.at(-1)?.request, parameters: next?.request.parameters });
  });

  it.each<[given: string, endings: unknown[], end: unknown]>([
    ['it is refused although it is left out', [include], include],
    ['what only the caller can mend is refused then', [include, rejected], rejected],
  ])('%s -> fails, and nothing is remembered', async (_, endings, end) => {
    const made = await run(endings, { refused, request, user: 'M' });
    expect([made.end, made.asked.length]).toEqual([end, 2]);
    expect(partsIn(await run(['done'], { refused, request, user: 'M' }))).toEqual(['']);
  });

  it('a call without it that is refused, and answered with it -> it counts no longer', async () => {
    await run([include, 'done'], { refused, request, user: 'M' });
    const undone = await run([rejected, 'done'], { refused, request, user: 'M' });
    expect(partsIn(undone)).toEqual(['encryptedReasoning', '']);
    expect(partsIn(await run(['done'], { refused, request, user: 'M' }))).toEqual(['']);
  });

  it('another part is refused to the same user later -> the calls are made without both', async () => {
    for (const error of [cache, laterSystem]) await run([error, 'done'], { refused, request, user: 'M' });
    expect(partsIn(await run(['done'], { refused, request, user: 'M' }))).toEqual(['laterSystem,cache']);
  });
});

describe('hints that the requests of a provider have no field for', () => {
  const ignores = new Set(['seed', 'presencePenalty'] as const);
  const request = requestOf({ seed: 1, presencePenalty: 0, temperature: 0.5 });

  it('are asked for -> each call is made without them, and those that had an effect are named', async () => {
    const { asked } = await run([hint, 'done'], { request, ignores });
    expect(asked.map(({ request: { parameters }, ignored }) => [parameters, ignored])).toEqual([
      [{ temperature: 0.5 }, ['seed']],
      [{}, ['temperature', 'seed']],
    ]);
  });
});

describe('what is remembered of refused parts', () => {
  const [silent, long] = [new Failure('provider_timeout'), new Failure('context_length_exceeded')];
  const none = refusal("'reasoning_effort' does not support 'none' with this model.", 'reasoning_effort');
  const value = refusal("'reasoning_effort' is not supported.");
  const both = refusal('`temperature` and `top_p` cannot both be specified for this model.');
  const ends = {
    hint,
    choice,
    effort,
    rejected,
    none,
    value,
    silent,
    long,
    failed: failed(),
    limited: limited(1),
  };
  const isEnd = (word: string): word is keyof typeof ends => word in ends;
  const numberOf = (word?: string) => (word === '-' ? undefined : Number(word));
  let refused: RefusedParts;
  let now: number;
  beforeEach(() => {
    now = 1;
    refused = new RefusedParts({ now: () => now });
  });

  /**
   * Plays steps: 'M: hint done = 0.5/high -/high' is a chat of user M that is refused a hint and answered then, and the
   * temperature and effort that its calls have. 'M bare 1/-' is one without tools that asks for temperature 1 alone.
   */
  async function play(steps: string): Promise<void> {
    for (const step of steps.split('; ')) {
      const pattern = /^(\w)(@?)( bare)?(?: (\S+)\/(\S+))?: ([\w ]+)(?: = (.+))?$/;
      const [, user, at, bare, asked = '0.5', word = 'high', endings = '', calls] =
        pattern.exec(step) ?? expect.unreachable(step);
      const reasoningEffort = word === '-' ? undefined : (word as 'high');
      const parameters = {
        ...givenFields({ temperature: numberOf(asked), reasoningEffort }),
        ...(!bare && { tools }),
      };
      const own = { request: { ...requestOf(parameters), model: at ? 'other' : 'm' }, refused };
      const words = endings.split(' ').map((end) => (isEnd(end) ? ends[end] : 'done'));
      const made = await run(words, { ...own, ...givenFields({ user }) });
      const shown = made.asked.map(({ request }) => request.parameters ?? {});
      const sent = shown.map((each) => `${each.temperature ?? '-'}/${each.reasoningEffort ?? '-'}`);
      if (calls) expect(sent.join(' '), step).toBe(calls);
    }
  }

  it.each(
    Object.entries({
      'a hint -> the user pays one refused call, and so does each other':
        'M: hint done = 0.5/high -/-; M: done = -/high; V: hint done = 0.5/high -/-; V: done = -/high',
      'an effort beside tools -> the same':
        'M: effort done = 0.5/high -/none; M: done = 0.5/none; V: done = 0.5/high; M bare: done = 0.5/high',
      'a repetition that is refused or fails -> nothing is remembered':
        'M: hint rejected; M: hint effort; M: effort failed; M: effort silent; M: done = 0.5/high',
      'a value, or a model -> others are asked for':
        'M: hint done; M 0.6/high: done = 0.6/high; M@: done = 0.5/high; M: done = -/high',
      'a value of the effort -> other hints of the request are asked for':
        'M bare 0.5/max: value done; M bare: done = 0.5/high; M bare 0.5/max: done = 0.5/-',
      'a hint beside an effort -> is left out beside others, too':
        'M bare: hint done; M bare 0.5/-: done = -/-; M bare 0.5/none: done = -/none',
      'a call without it that is refused -> the call as it was asked for, and with it from then on':
        'M: effort done; M: none done = 0.5/none 0.5/high; M: done = 0.5/high',
      'a call without it that is refused, and also with it -> it counts':
        'M: hint done; M: rejected hint = -/high 0.5/high; M: done = -/high',
      'a call without it that is limited, fails once, is too long, or gets no answer -> it counts':
        'M: hint done; M: limited; M: failed done; M: silent; M: long; M: done = -/high',
      'two calls without it that fail -> it counts no longer':
        'M: hint done; M: failed = -/high -/high; M: done = 0.5/high',
      'a call without it that is refused a choice of tool -> ends, and it counts':
        'M: hint done; M: choice = -/high; M: done = -/high',
      'a call without it that is refused another part -> both count':
        'M: hint done; M: effort done = -/high -/none; M: done = -/none',
    }),
  )('%s', (_, steps) => play(steps));

  it('an hour -> it is forgotten', async () => {
    await play('M: hint done');
    now += 3_000_000;
    // Another part has a time of its own.
    await play('M: done = -/high; M 0.6/high: hint done');
    now += 600_000;
    await play('M: done = -/high');
    now += 1;
    await play('M: done = 0.5/high; M 0.6/high: done = -/high');
  });

  it('a chat that must not be asked without its hints -> is asked with them, and fails', async () => {
    await play('M bare: hint done');
    const strict = { refused, user: 'M', isStrict: true } as const;
    const request = requestOf({ temperature: 0.5, reasoningEffort: 'high' });
    // With a part left out that it may be answered without, a refused hint says nothing of that.
    await run([cache, 'done'], { ...strict, request });
    const { end, asked } = await run([hint, 'done'], { ...strict, request });
    expect([end, asked.map(({ ignored }) => ignored)]).toEqual([hint, [undefined]]);
    expect((await run(['done'], { ...strict, request })).asked[0]?.request.omits).toEqual(new Set(['cache']));
  });

  it('a second refusal that is for the caller to mend -> does not end as one that may pass', async () => {
    await play('M: effort done');
    const { end } = await run([none, rejected], { request: requestOf({ tools }), refused, user: 'M' });
    expect(end).toMatchObject({ code: 'provider_rejected' });
  });

  it('two hints that are refused together -> each alone is still sent', async () => {
    const request = requestOf({ temperature: 0.5, topP: 0.5, reasoningEffort: 'high' });
    await run([both, 'done'], { request, refused, user: 'M' });
    await play('M bare: done = 0.5/high');
  });
});
