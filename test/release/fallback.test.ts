import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { authorization, type ChatCall, startDeployment } from '../support/deployment.js';
import { openStream, readStream } from '../support/event-streams.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';

/** Two API processes and a worker; OpenAI's calls may not take long, and Bedrock has a fallback by default. */
const deployment = await startDeployment({
  variables: {
    ...profiles.plain,
    OPENAI_TIMEOUT_MS: '3000',
    OPENAI_FIRST_TOKEN_TIMEOUT_MS: '2000',
    ANTHROPIC_FALLBACK_AFTER_MS: '300',
    BEDROCK_FALLBACK: 'vertexai/sim-echo',
    VERTEXAI_MODEL: 'sim-status-500@default',
  },
});
afterAll(deployment.stop);
const other = await deployment.startApi();

/** The models of the first attempt and of the second, which nothing else calls. */
const models = (first: string, second = 'sim-echo') => ({
  first: `${first}@${randomUUID()}`,
  second: `${second}@${randomUUID()}`,
});
const callsOf = (model: string) => deployment.simulator.calls.list({ model });
const arrived = (model: string) => deployment.simulator.waitForCall((call) => call.model === model);
const withFallback = (fallback: string, more: ChatCall = {}): ChatCall => ({
  ...more,
  headers: { 'X-LLM-Fallback': fallback, ...more.headers },
});
/** A chat that fails at OpenAI goes to Anthropic. */
const ask = ({ first, second }: ReturnType<typeof models>, headers: Record<string, string> = {}) =>
  withFallback(`anthropic/${second}`, { provider: 'openai', model: first, headers });

const read = async (location: string) => {
  const response = await fetch(`${deployment.url}${location}`, { headers: { Authorization: authorization } });
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says.
  return (await response.json()) as any;
};

describe('a chat with a fallback', () => {
  it.each([
    ['sim-status-500', 'provider_error'],
    ['sim-retry-after-30', 'provider_rate_limited'],
    ['sim-hang', 'provider_timeout'],
    ['sim-reset', 'provider_error'],
    ['sim-status-401', 'provider_rejected'],
    ['sim-context-1', 'context_length_exceeded'],
  ])('meets %s → is answered by the next provider', async (behaviour, code) => {
    const named = models(behaviour);
    const { status, headers, body } = await deployment.chat(ask(named));
    expect([status, headers.get('x-llm-provider')]).toEqual([200, 'anthropic']);
    expect(body.response).toContain('Hello');
    expect(headers.get('x-llm-attempts')).toMatch(
      new RegExp(`^openai;code=${code}, anthropic;code=ok;input=\\d+;output=\\d+$`),
    );
    expect(headers.get('x-llm-model')).toContain(named.second);
    expect(callsOf(named.second)).toHaveLength(1);
  });

  it('has all its providers fail → ends with the failure of the first', async () => {
    const { first, second } = models('sim-status-500', 'sim-status-400');
    const third = `sim-retry-after-60@${randomUUID()}`;
    const { status, headers, body } = await deployment.chat(
      withFallback(`anthropic/${third}, bedrock/${second}`, { model: first }),
    );
    expect(headers.get('x-llm-attempts')).toBe(
      'openai;code=provider_error, anthropic;code=provider_rate_limited, bedrock;code=provider_rejected',
    );
    expect([status, body.code, body.provider, body.retryable]).toEqual([
      500,
      'provider_error',
      'openai',
      true,
    ]);
    for (const model of [third, second]) expect(callsOf(model)).toHaveLength(1);
  });

  it.each([
    ['sim-blocked', 'content_blocked'],
    ['sim-status-400', 'provider_rejected'],
  ])('meets %s → ends with that, and no other provider sees it', async (behaviour, code) => {
    const named = models(behaviour);
    const { status, body } = await deployment.chat(ask(named));
    expect([status, body.code]).toEqual([500, code]);
    expect(callsOf(named.second)).toEqual([]);
  });

  it.each([
    ['sim-refused', 'openai'],
    ['sim-blocked-reply', undefined],
  ])(
    'meets %s of a classifier → is answered elsewhere, if no text stood before it: by %s',
    async (behaviour, by) => {
      const { first, second } = models(behaviour);
      const asked = withFallback(`openai/${second}`, { provider: 'anthropic', model: first });
      const { headers, body } = await deployment.chat(asked);
      expect([headers.get('x-llm-provider') ?? undefined, body.code]).toEqual(
        by ? [by, undefined] : [undefined, 'content_blocked'],
      );
      expect(callsOf(first)).toHaveLength(1);
    },
  );

  it('has four targets that fail at one provider → six calls at most', async () => {
    const [first = '', ...targets] = Array.from({ length: 5 }, () => `sim-status-500@${randomUUID()}`);
    const fallback = targets.map((model) => `openai/${model}`).join();
    const { body } = await deployment.chat(withFallback(fallback, { model: first }));
    expect(body.code).toBe('provider_error');
    expect([first, ...targets].map((model) => callsOf(model).length)).toEqual([2, 1, 1, 1, 1]);
  });

  it('names a provider that asks for a second → waits for it, and asks no other', async () => {
    const named = models(`sim-limit-1-1-${randomUUID()}`);
    const { status, headers } = await deployment.chat(ask(named));
    expect([status, headers.get('x-llm-provider')]).toEqual([200, 'openai']);
    expect(callsOf(named.second)).toEqual([]);
  });
});

describe('the fallback of the operators', () => {
  it('→ is for requests that do not name one, and can be declined', async () => {
    const call = { provider: 'bedrock', model: `sim-status-500@${randomUUID()}` };
    const answered = await deployment.chat(call);
    expect([answered.status, answered.headers.get('x-llm-provider')]).toEqual([200, 'vertexai']);
    const declined = await deployment.chat(withFallback('none', call));
    expect([declined.status, declined.body.code]).toEqual([500, 'provider_error']);
  });
});

describe('a stream with a fallback', () => {
  const stream = (named: ReturnType<typeof models>) =>
    openStream({ url: deployment.url, ...streamed(ask(named)) });
  const streamed = ({ model = '', headers = {} }: ChatCall) => ({ model, headers });

  it('has a first provider that says nothing in time → begins at the next', async () => {
    const { response, text, end } = await readStream(await stream(models('sim-hang', 'sim-stream-20-0')));
    expect(response.headers.get('x-llm-provider')).toBe('anthropic');
    expect(end).toMatchObject({
      event: 'done',
      data: {
        response: text,
        provider: 'anthropic',
        attempts: [
          { provider: 'openai', code: 'provider_timeout' },
          { provider: 'anthropic', code: 'ok' },
        ],
      },
    });
  });

  describe('whose first provider is slower than operators allow', () => {
    const asked = (first: string, fallback: string) => ({
      ...{ url: deployment.url, provider: 'anthropic', model: first },
      headers: { 'X-LLM-Fallback': fallback },
    });
    /** Asks for a stream that is cut, and gives its calls and what was read of it. */
    const readCut = async () => {
      const named = models('sim-hang', 'sim-stream-20-0');
      const read = await readStream(await openStream(asked(named.first, `bedrock/${named.second}`)));
      const [[cut], [next]] = [callsOf(named.first), callsOf(named.second)];
      return { ...read, cut, next };
    };

    it('→ is cut, and only then is the next provider asked', async () => {
      const { text, end, cut, next } = await readCut();
      const attempts = [
        { provider: 'anthropic', code: 'provider_timeout' },
        { provider: 'bedrock', code: 'ok' },
      ];
      expect(end).toMatchObject({ event: 'done', data: { response: text, attempts } });
      expect(cut?.clientClosedFirst).toBe(true);
      expect(cut?.ended).toBeLessThan(next?.begun ?? 0);
    });

    it('has no fallback, or is no stream → is not cut', async () => {
      const [alone, whole] = [models('sim-gate-0').first, models('sim-gate-0').first];
      const streamed = openStream(asked(alone, 'none')).then((opened) => readStream(opened));
      const answered = deployment.chat(asked(whole, 'bedrock/sim-echo'));
      await Promise.all([arrived(alone), arrived(whole)]);
      // One that came later has been cut.
      expect((await readCut()).cut?.clientClosedFirst).toBe(true);
      for (const model of [alone, whole]) deployment.simulator.open(model);
      expect((await streamed).end).toMatchObject({ event: 'done', data: { provider: 'anthropic' } });
      expect((await answered).headers.get('x-llm-provider')).toBe('anthropic');
    });
  });

  it('has begun and fails → goes to no other provider', async () => {
    const named = models('sim-cut-5');
    const { text, end } = await readStream(await stream(named));
    expect(text).not.toBe('');
    expect(end).toMatchObject({ event: 'error', data: { code: 'provider_error' } });
    expect(callsOf(named.second)).toEqual([]);
  });
});

describe('a stored chat with a fallback', () => {
  it('loses the API process that took it → falls back all the same', async () => {
    const dying = await deployment.startApi();
    const named = models('sim-hang');
    const { status, headers } = await dying.chat(ask(named, { Prefer: 'respond-async' }));
    expect(status).toBe(202);
    await arrived(named.first);
    process.kill(dying.child.pid, 'SIGKILL');
    await vi.waitFor(async () => {
      const chat = await read(headers.get('location') ?? '');
      expect(chat).toMatchObject({ status: 'completed', provider: 'anthropic' });
    }, patience);
    expect(callsOf(named.second)).toHaveLength(1);
  });

  it('is sent again with its key → is joined and replayed; with another fallback it is another request', async () => {
    const key = { 'Idempotency-Key': randomUUID() };
    const named = models('sim-status-500', 'sim-gate-0');
    const running = deployment.chat(ask(named, key));
    await arrived(named.second);
    const joining = other.chat(ask(named, key));
    deployment.simulator.open(named.second);
    const { body } = await running;
    for (const { status, headers, body: same } of [await joining, await other.chat(ask(named, key))])
      expect([status, headers.get('x-llm-provider'), same]).toEqual([200, 'anthropic', body]);
    expect(callsOf(named.second)).toHaveLength(1);
    const another = await other.chat({ model: named.first, headers: key });
    expect([another.status, another.body.code]).toEqual([422, 'idempotency_key_reused']);
  });

  it('is deleted → its call is cut at the provider that it has come to', async () => {
    const named = models('sim-status-500', 'sim-hang');
    const { headers } = await deployment.chat(ask(named, { Prefer: 'respond-async' }));
    const call = await arrived(named.second);
    const location = headers.get('location') ?? '';
    await fetch(`${other.url}${location}`, { method: 'DELETE', headers: { Authorization: authorization } });
    await call.closed;
    expect(call.clientClosedFirst).toBe(true);
    expect(await read(location)).toMatchObject({ status: 'cancelled' });
  });
});

describe('a client that disconnects', () => {
  it('→ ends the call of the provider that its chat has come to', async () => {
    const named = models('sim-status-500', 'sim-hang');
    const leaving = new AbortController();
    const asking = deployment.chat({ ...ask(named), signal: leaving.signal }).catch(() => undefined);
    const call = await arrived(named.second);
    leaving.abort();
    await asking;
    await call.closed;
    expect(call.clientClosedFirst).toBe(true);
  });
});
