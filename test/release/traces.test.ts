import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { providerIds } from '../../shared/contracts/contract.js';
import { promptCanary, providerKeys } from '../support/canaries.js';
import {
  authorization,
  blogToken,
  chatToken,
  type Deployment,
  password,
  startDeployment,
  username,
} from '../support/deployment.js';
import { openStream, readStream } from '../support/event-streams.js';
import { patience, patienceMs } from '../support/patience.js';
import { profiles } from '../support/profiles.js';
import { type CollectedSpan, startTraceCollector, type TraceCollector } from '../support/trace-collector.js';

const collectorKey = 'canary-of-the-collector-key-1202056903';
const tracedTo = ({ url }: TraceCollector) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_EXPORTER_OTLP_HEADERS: `x-collector-key=${collectorKey}`,
  OTEL_BSP_SCHEDULE_DELAY: '50',
});

/** A caller's trace, and its header. */
const newTrace = () => {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-01` } };
};
const named = (spans: CollectedSpan[], name: string) => spans.filter((span) => span.name === name);
const one = (spans: CollectedSpan[], name: string): CollectedSpan => {
  const [span, ...more] = named(spans, name);
  if (span === undefined || more.length > 0) throw new Error(`not one ${name}`);
  return span;
};

const folder = mkdtempSync(join(tmpdir(), 'quillgate-modules-'));
const recorder = pathToFileURL(resolve('test/support/record-modules.mjs')).href;
/** Has the programs write down the modules that they load; `read` gives those of all. */
const recordModules = () => {
  const file = join(folder, randomUUID());
  const variables = { NODE_OPTIONS: `--import=${recorder}`, QUILLGATE_TEST_MODULES: file };
  return { variables, read: () => readFileSync(file, 'utf8') };
};

let collector: TraceCollector;
let deployment: Deployment;
const modules = recordModules();
beforeAll(async () => {
  collector = await startTraceCollector();
  const variables = { ...profiles.plain, ...tracedTo(collector), ...modules.variables };
  deployment = await startDeployment({ workers: 0, variables });
  await deployment.startWorker({ WORKER_PROVIDERS: 'openai,bedrock,vertexai' });
  await deployment.startWorker({ WORKER_PROVIDERS: 'anthropic' });
});
afterAll(async () => {
  await deployment?.stop();
  await collector?.close();
  rmSync(folder, { recursive: true });
});

const traceparentOf = (model: string) =>
  deployment.simulator.calls.list({ model }).map(({ facts }) => facts.traceparent);

describe('a chat that is traced', () => {
  it('is answered → one trace, from its request through the queue to the call, to which the log leads', async () => {
    const { traceId, spanId, headers } = newTrace();
    const model = `sim-echo@${randomUUID()}`;
    const { status, headers: answered } = await deployment.chat({ model, headers });
    expect(status).toBe(200);
    const path = [
      'POST /chat',
      'send chat-openai',
      'wait chat-openai',
      'process chat-openai',
      `chat ${model}`,
    ];
    const spans = await collector.trace(traceId, path);
    const [request, send, wait, job, call] = path.map((name) => one(spans, name));
    const facts = [request, send, wait, job, call].map((span) => [span?.parentSpanId, span?.kind]);
    expect(facts).toEqual([
      [spanId, 'server'],
      [request?.spanId, 'producer'],
      [send?.spanId, 'internal'],
      [send?.spanId, 'consumer'],
      [job?.spanId, 'client'],
    ]);
    const services = [request, job].map((span) => span?.resource['service.name']);
    expect(services).toEqual(['quillgate-api', 'quillgate-worker']);
    const id = answered.get('x-request-id');
    expect(request?.attributes).toMatchObject({
      ...{ 'http.request.method': 'POST', 'http.route': '/chat', 'http.response.status_code': 200 },
      ...{ 'quillgate.request.id': id, 'quillgate.provider': 'openai', 'quillgate.code': 'ok' },
    });
    expect(job?.attributes).toMatchObject({ 'messaging.message.id': id, 'quillgate.code': 'ok' });
    expect(call?.attributes).toMatchObject({
      ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai' },
      'gen_ai.request.model': model,
      ...{ 'gen_ai.response.model': model, 'gen_ai.response.finish_reasons': ['stop'] },
      'gen_ai.usage.input_tokens': Number(answered.get('x-llm-input-tokens')),
      'gen_ai.usage.output_tokens': Number(answered.get('x-llm-output-tokens')),
    });
    expect(traceparentOf(model)).toEqual([`00-${traceId}-${call?.spanId}-01`]);
    expect(spans.every(({ hasFailed }) => !hasFailed)).toBe(true);
    expect(wait?.endedAt).toBe(job?.startedAt);
    const lines = deployment
      .logs()
      .split('\n')
      .filter((line) => line.includes(traceId));
    expect(lines.map((line) => JSON.parse(line).msg).sort()).toEqual(['job completed', 'request']);
  });

  it('is retried and falls back → every call, at both workers', async () => {
    const { traceId, headers } = newTrace();
    const [first, second] = [`sim-status-500@${randomUUID()}`, `sim-echo@${randomUUID()}`];
    const fallback = { 'X-LLM-Fallback': `anthropic/${second}` };
    expect((await deployment.chat({ model: first, headers: { ...headers, ...fallback } })).status).toBe(200);
    const names = ['POST /chat', 'process chat-openai', 'process chat-anthropic', `chat ${second}`];
    const spans = await collector.trace(traceId, names);
    const [failed, following] = [one(spans, 'process chat-openai'), one(spans, 'process chat-anthropic')];
    for (const { parentSpanId } of [following, one(spans, 'wait chat-anthropic')])
      expect(parentSpanId).toBe(failed.spanId);
    expect(following.resource['service.instance.id']).not.toBe(failed.resource['service.instance.id']);
    const error = { 'error.type': 'provider_error' };
    const attempt = { ...error, 'quillgate.fallback': 'anthropic', 'quillgate.attempt': 1 };
    expect(failed).toMatchObject({ hasFailed: true, attributes: attempt });
    expect(following).toMatchObject({ hasFailed: false, attributes: { 'quillgate.attempt': 2 } });
    const calls = named(spans, `chat ${first}`);
    expect(calls.map(({ attributes }) => attributes['http.request.resend_count'])).toEqual([undefined, 1]);
    for (const call of calls)
      expect(call).toMatchObject({ parentSpanId: failed.spanId, hasFailed: true, attributes: error });
    const whole = { hasFailed: false, attributes: { 'quillgate.provider': 'anthropic' } };
    expect(one(spans, 'POST /chat')).toMatchObject(whole);
  });

  it.each(providerIds)(
    'is a stream of %s → the call has the trace, and its first piece is timed',
    async (provider) => {
      const { traceId, headers } = newTrace();
      const model = `sim-stream-5-5@${randomUUID()}`;
      const { end } = await readStream(await openStream({ url: deployment.url, provider, model, headers }));
      expect(end).toMatchObject({ event: 'done' });
      const call = one(await collector.trace(traceId, ['POST /chat', `chat ${model}`]), `chat ${model}`);
      expect(call.attributes['gen_ai.request.stream']).toBe(true);
      expect(call.attributes['gen_ai.response.time_to_first_chunk']).toBeGreaterThan(0);
      expect(traceparentOf(model)).toEqual([`00-${traceId}-${call.spanId}-01`]);
    },
  );

  it('fails → its code is the error; that of a caller is none', async () => {
    const [theirs, ours] = [newTrace(), newTrace()];
    await deployment.chat({ provider: 'nobody', headers: theirs.headers });
    await deployment.chat({ model: 'sim-status-400', headers: ours.headers });
    const attributes = { 'http.response.status_code': 400, 'quillgate.code': 'unknown_provider' };
    const refused = one(await collector.trace(theirs.traceId, ['POST /chat']), 'POST /chat');
    expect(refused).toMatchObject({ hasFailed: false, attributes });
    const failed = await collector.trace(ours.traceId, ['POST /chat', 'process chat-openai']);
    for (const name of ['POST /chat', 'process chat-openai', 'chat sim-status-400'])
      expect(one(failed, name)).toMatchObject({
        hasFailed: true,
        attributes: { 'error.type': 'provider_rejected' },
      });
  });

  it.each([
    ['no traceparent', {}],
    ['one that cannot be read', { traceparent: 'nonsense' }],
    ['one of no trace', { traceparent: `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01` }],
  ])('has %s → it begins a trace of its own', async (_, headers) => {
    const model = `sim-echo@${randomUUID()}`;
    await deployment.chat({ model, headers });
    const [sent = ''] = traceparentOf(model);
    expect(sent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    const spans = await collector.trace(sent.split('-')[1] ?? '', ['POST /chat', `chat ${model}`]);
    expect(one(spans, 'POST /chat').parentSpanId ?? '').toBe('');
  });

  it('is full of secrets → no text, credential or user is sent to the collector', async () => {
    const { traceId, headers } = newTrace();
    const secret = `canary-${randomUUID()}`;
    const asked = await fetch(`${deployment.url}/v1/chat/completions?q=${secret}`, {
      method: 'POST',
      headers: {
        ...{ ...headers, Authorization: `Bearer ${chatToken}`, 'Content-Type': 'application/json' },
        ...{ tracestate: `vendor=${secret}`, baggage: `key=${secret}`, 'User-Agent': secret, Cookie: secret },
      },
      body: JSON.stringify({
        ...{ model: 'openai/sim-echo', stop: [`stop-${secret}`], user: secret },
        messages: [{ role: 'user', content: `${promptCanary} ${secret}` }],
      }),
    });
    await asked.text();
    const posted = newTrace();
    const post = { json: { title: secret, content: secret }, headers: posted.headers };
    expect([asked.status, (await deployment.blog('/blogs', post)).status]).toEqual([200, 201]);
    const nowhere = await fetch(`${deployment.url}/nowhere/${secret}`, { headers });
    await collector.trace(traceId, ['POST /v1/chat/completions', 'chat sim-echo']);
    const isStrangers = ({ attributes }: CollectedSpan) =>
      attributes['quillgate.request.id'] === nowhere.headers.get('x-request-id');
    const strangers = await vi.waitUntil(() => collector.spans().find(isStrangers), patience);
    // Without valid credentials a traceparent does not count.
    expect(strangers.traceId).not.toBe(traceId);
    await collector.trace(posted.traceId, ['POST /blogs']);
    const sent = collector.requests.map(({ body }) => body).join();
    const credentials = [password, blogToken, chatToken, authorization, ...Object.values(providerKeys)];
    for (const canary of [secret, promptCanary, ...credentials, collectorKey, `"${username}"`])
      expect(sent).not.toContain(canary);
    const [first] = collector.requests;
    expect(first).toMatchObject({ path: '/v1/traces', headers: { 'x-collector-key': collectorKey } });
    expect(deployment.logs()).not.toContain(collectorKey);
  });
});

describe('an installation whose collector keeps silent', () => {
  it('→ answers as ever, and stops in time', async () => {
    const silent = await startTraceCollector({ answer: 'never' });
    // Closing may take five seconds beyond the grace: then a program exits with 1.
    const own = { ...tracedTo(silent), SHUTDOWN_GRACE_MS: '0', OTEL_EXPORTER_OTLP_TIMEOUT: '600000' };
    const [api, worker] = [await deployment.startApi(own), await deployment.startWorker(own)];
    const replies = await Promise.all(Array.from({ length: 20 }, () => api.chat({})));
    expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200));
    const programs = [api.child, worker];
    await Promise.all(programs.map((program) => program.stop({ graceMs: patienceMs })));
    expect(await Promise.all(programs.map(({ exitCode }) => exitCode))).toEqual([0, 0]);
    await silent.close();
  });
});

describe('an installation without a collector', () => {
  it('→ loads nothing of what records traces, and passes none on', async () => {
    const { variables, read } = recordModules();
    const untraced = { ...variables, OTEL_EXPORTER_OTLP_ENDPOINT: '' };
    const api = await deployment.startApi(untraced);
    const [bedrock, model] = ['bedrock', `sim-echo@${randomUUID()}`];
    const before = [...deployment.workers];
    await deployment.startWorker(untraced);
    await Promise.all(before.map((worker) => worker.stop({ graceMs: patienceMs })));
    expect((await api.chat({ provider: bedrock, model, headers: newTrace().headers })).status).toBe(200);
    expect(traceparentOf(model)).toEqual([undefined]);
    expect(read()).toContain('/dist/programs/start-worker');
    expect(read()).not.toContain('/otlp-tracing');
    expect(modules.read()).toContain('/otlp-tracing');
  });
});
