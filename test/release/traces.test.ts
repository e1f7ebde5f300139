import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { providerIds } from '../../shared/contract.js';
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
import { patience } from '../support/patience.js';
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

const named = (spans: CollectedSpan[], name: string): CollectedSpan[] =>
  spans.filter((span) => span.name === name);
const one = (spans: CollectedSpan[], name: string): CollectedSpan => {
  const [span, ...more] = named(spans, name);
  if (span === undefined || more.length > 0) throw new Error(`not one ${name}`);
  return span;
};

describe('a traced installation', () => {
  let collector: TraceCollector;
  let deployment: Deployment;
  beforeAll(async () => {
    collector = await startTraceCollector();
    const variables = tracedTo(collector);
    deployment = await startDeployment({ workers: 0, variables });
    await deployment.startWorker({ WORKER_PROVIDERS: 'openai,bedrock,vertexai' });
    await deployment.startWorker({ WORKER_PROVIDERS: 'anthropic' });
  });
  afterAll(async () => {
    await deployment.stop();
    await collector.close();
  });

  const traceparentOf = (model: string) =>
    deployment.simulator.calls.list({ model }).map(({ facts }) => facts.traceparent);

  it('shows a chat as one trace, from its request through the queue to the call', async () => {
    const { traceId, spanId, headers } = newTrace();
    const model = `sim-echo@${randomUUID()}`;
    const { status, headers: answered } = await deployment.chat({ model, headers });
    expect(status).toBe(200);
    const names = [
      'POST /chat',
      'send chat-openai',
      'wait chat-openai',
      'process chat-openai',
      `chat ${model}`,
    ];
    const spans = await collector.trace(traceId, names);
    const path = names.map((name) => one(spans, name));
    const [request, send, wait, job, call] = path as [
      ...[CollectedSpan, CollectedSpan, CollectedSpan],
      ...[CollectedSpan, CollectedSpan],
    ];
    const parents = [spanId, request.spanId, send.spanId, send.spanId, job.spanId];
    expect(path.map(({ parentSpanId }) => parentSpanId)).toEqual(parents);
    const kinds = ['server', 'producer', 'internal', 'consumer', 'client'];
    expect(path.map(({ kind }) => kind)).toEqual(kinds);
    const services = [request, job].map(({ resource }) => resource['service.name']);
    expect(services).toEqual(['quillgate-api', 'quillgate-worker']);
    const id = answered.get('x-request-id');
    expect(request.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.route': '/chat',
      'http.response.status_code': 200,
      'quillgate.request.id': id,
      'quillgate.provider': 'openai',
      'quillgate.code': 'ok',
    });
    expect(job.attributes).toMatchObject({ 'messaging.message.id': id, 'quillgate.code': 'ok' });
    expect(call.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': model,
      'gen_ai.request.max_tokens': 4096,
      'gen_ai.response.model': model,
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.usage.input_tokens': Number(answered.get('x-llm-input-tokens')),
      'gen_ai.usage.output_tokens': Number(answered.get('x-llm-output-tokens')),
    });
    expect(traceparentOf(model)).toEqual([`00-${traceId}-${call.spanId}-01`]);
    expect(spans.every(({ hasFailed }) => !hasFailed)).toBe(true);
    expect(wait.endedAt).toBe(job.startedAt);
    // The log leads to the trace, and back.
    const logged = deployment
      .logs()
      .split('\n')
      .filter((line) => line.includes(traceId));
    expect(logged.map((line) => JSON.parse(line).msg).sort()).toEqual(['job completed', 'request']);
  });

  it('shows every call of a retry and a fallback, at both workers', async () => {
    const { traceId, headers } = newTrace();
    const [first, second] = [`sim-status-500@${randomUUID()}`, `sim-echo@${randomUUID()}`];
    const fallback = { 'X-LLM-Fallback': `anthropic/${second}` };
    const { status } = await deployment.chat({ model: first, headers: { ...headers, ...fallback } });
    expect(status).toBe(200);
    const names = ['POST /chat', 'process chat-openai', 'process chat-anthropic', `chat ${second}`];
    const spans = await collector.trace(traceId, names);
    const [failed, following] = [one(spans, 'process chat-openai'), one(spans, 'process chat-anthropic')];
    expect(following.parentSpanId).toBe(failed.spanId);
    expect(one(spans, 'wait chat-anthropic').parentSpanId).toBe(failed.spanId);
    expect(following.resource['service.instance.id']).not.toBe(failed.resource['service.instance.id']);
    expect(failed).toMatchObject({
      hasFailed: true,
      attributes: {
        'error.type': 'provider_error',
        'quillgate.fallback': 'anthropic',
        'quillgate.attempt': 1,
      },
    });
    expect(following).toMatchObject({ hasFailed: false, attributes: { 'quillgate.attempt': 2 } });
    const calls = named(spans, `chat ${first}`);
    expect(calls.map(({ attributes }) => attributes['http.request.resend_count'])).toEqual([undefined, 1]);
    for (const call of calls)
      expect(call).toMatchObject({
        parentSpanId: failed.spanId,
        hasFailed: true,
        attributes: { 'error.type': 'provider_error' },
      });
    expect(one(spans, 'POST /chat')).toMatchObject({
      hasFailed: false,
      attributes: { 'quillgate.provider': 'anthropic' },
    });
  });

  it.each(providerIds)(
    'sends %s the trace of its call, also of a stream, whose first piece it times',
    async (provider) => {
      const { traceId, headers } = newTrace();
      const model = `sim-stream-5-5@${randomUUID()}`;
      const { end } = await readStream(await openStream({ url: deployment.url, provider, model, headers }));
      expect(end).toMatchObject({ event: 'done' });
      const spans = await collector.trace(traceId, ['POST /chat', `chat ${model}`]);
      const call = one(spans, `chat ${model}`);
      expect(call.attributes).toMatchObject({
        'gen_ai.request.stream': true,
        'gen_ai.response.time_to_first_chunk': expect.any(Number),
      });
      expect(call.attributes['gen_ai.response.time_to_first_chunk']).toBeGreaterThan(0);
      expect(traceparentOf(model)).toEqual([`00-${traceId}-${call.spanId}-01`]);
    },
  );

  it('names failures by their codes; those of callers are no errors', async () => {
    const [theirs, ours] = [newTrace(), newTrace()];
    await deployment.chat({ provider: 'nobody', headers: theirs.headers });
    await deployment.chat({ model: 'sim-status-400', headers: ours.headers });
    expect(one(await collector.trace(theirs.traceId, ['POST /chat']), 'POST /chat')).toMatchObject({
      hasFailed: false,
      attributes: { 'http.response.status_code': 400, 'quillgate.code': 'unknown_provider' },
    });
    const failed = await collector.trace(ours.traceId, ['POST /chat', 'process chat-openai']);
    for (const name of ['POST /chat', 'process chat-openai', 'chat sim-status-400'])
      expect(one(failed, name)).toMatchObject({
        hasFailed: true,
        attributes: { 'error.type': 'provider_rejected' },
      });
  });

  it('begins a trace of its own for a request without one, or with one that cannot be read', async () => {
    const models = [undefined, 'nonsense', `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`].map(
      (traceparent) => ({
        model: `sim-echo@${randomUUID()}`,
        headers: traceparent === undefined ? {} : { traceparent },
      }),
    );
    for (const call of models) {
      await deployment.chat(call);
      const [sent = ''] = traceparentOf(call.model);
      expect(sent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
      const spans = await collector.trace(sent.split('-')[1] ?? '', ['POST /chat', `chat ${call.model}`]);
      expect(one(spans, 'POST /chat').parentSpanId ?? '').toBe('');
    }
  });

  it('lets no text, credential or user out', async () => {
    const { traceId, headers } = newTrace();
    const secret = `canary-${randomUUID()}`;
    const asked = await fetch(`${deployment.url}/v1/chat/completions?q=${secret}`, {
      method: 'POST',
      headers: {
        ...{ ...headers, Authorization: `Bearer ${chatToken}`, 'Content-Type': 'application/json' },
        ...{ tracestate: `vendor=${secret}`, baggage: `key=${secret}`, 'User-Agent': secret, Cookie: secret },
      },
      body: JSON.stringify({
        model: 'openai/sim-echo',
        messages: [{ role: 'user', content: `${promptCanary} ${secret}` }],
        stop: [`stop-${secret}`],
        user: secret,
      }),
    });
    expect(asked.status).toBe(200);
    await asked.text();
    const posted = newTrace();
    const blog = { json: { title: secret, content: secret }, headers: posted.headers };
    expect((await deployment.blog('/blogs', blog)).status).toBe(201);
    const nowhere = await fetch(`${deployment.url}/nowhere/${secret}`, { headers });
    await collector.trace(traceId, ['POST /v1/chat/completions', 'chat sim-echo']);
    const isStrangers = ({ attributes }: CollectedSpan) =>
      attributes['quillgate.request.id'] === nowhere.headers.get('x-request-id');
    const strangers = await vi.waitUntil(() => collector.spans().find(isStrangers), patience);
    // Without valid credentials a traceparent does not count (finding O5).
    expect(strangers.traceId).not.toBe(traceId);
    await collector.trace(posted.traceId, ['POST /blogs']);
    const sent = collector.requests.map(({ body }) => body).join();
    const credentials = [password, blogToken, chatToken, authorization, collectorKey];
    const canaries = [secret, promptCanary, ...credentials, `"${username}"`];
    for (const canary of [...canaries, ...Object.values(providerKeys)]) expect(sent).not.toContain(canary);
    expect(collector.requests[0]).toMatchObject({
      path: '/v1/traces',
      headers: { 'x-collector-key': collectorKey },
    });
    expect(deployment.logs()).not.toContain(collectorKey);
  });
});

describe('an installation whose collector keeps silent', () => {
  it('answers as ever, and stops in time', async () => {
    const collector = await startTraceCollector({ answer: 'never' });
    // Closing may take five seconds beyond the grace: then a program exits with 1.
    const variables = {
      ...{ ...tracedTo(collector), SHUTDOWN_GRACE_MS: '0' },
      OTEL_EXPORTER_OTLP_TIMEOUT: '600000',
    };
    const deployment = await startDeployment({ variables });
    const chats = Array.from({ length: 20 }, () => deployment.chat({}));
    expect((await Promise.all(chats)).map(({ status }) => status)).toEqual(Array(20).fill(200));
    const programs = [deployment.api, ...deployment.workers];
    for (const { pid } of programs) process.kill(pid, 'SIGTERM');
    expect(await Promise.all(programs.map(({ exitCode }) => exitCode))).toEqual([0, 0]);
    expect(deployment.logs()).not.toContain(collectorKey);
    await deployment.stop();
    await collector.close();
  });
});

describe('an installation without a collector', () => {
  const dir = mkdtempSync(join(tmpdir(), 'quillgate-modules-'));
  afterAll(() => rmSync(dir, { recursive: true }));

  const modulesWith = async (more: Record<string, string>, headers: Record<string, string>) => {
    const file = join(dir, randomUUID());
    const recorder = pathToFileURL(resolve('test/support/record-modules.mjs')).href;
    const variables = { NODE_OPTIONS: `--import=${recorder}`, QUILLGATE_TEST_MODULES: file, ...more };
    const deployment = await startDeployment({ variables });
    const model = `sim-echo@${randomUUID()}`;
    expect((await deployment.chat({ model, headers })).status).toBe(200);
    const [call] = deployment.simulator.calls.list({ model });
    await deployment.stop();
    return { loaded: readFileSync(file, 'utf8'), traceparent: call?.facts.traceparent };
  };

  it('loads nothing of what records traces, and passes none on; one with a collector does both', async () => {
    const without = await modulesWith({}, newTrace().headers);
    expect(without.loaded).toContain('/dist/programs/start-worker');
    expect(without.loaded).not.toContain('/otlp-tracing');
    expect(without.traceparent).toBeUndefined();
    const collector = await startTraceCollector();
    const { loaded, traceparent } = await modulesWith(tracedTo(collector), {});
    await collector.close();
    expect(loaded).toContain('/otlp-tracing');
    expect(traceparent).toBeDefined();
  });
});
