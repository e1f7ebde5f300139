import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Environment, parseConfig } from '../../../shared/config/config.js';
import { openTracing } from '../../../shared/runtime/open-tracing.js';
import type { Tracing } from '../../../shared/runtime/tracing.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { startTraceCollector, type TraceCollector } from '../../support/trace-collector.js';

const logged = createRecordingLog();

/** As a program has it: OpenTelemetry's parts read the environment themselves. */
const open = (environment: Environment, closingMs = 60_000) => {
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  const config = parseConfig(environment, 'config');
  return openTracing({ config, program: 'api', log: logged.log, closingMs });
};
afterEach(() => {
  vi.unstubAllEnvs();
});

describe('openTracing', () => {
  it.each([
    ['nothing is set', {}],
    ['only other variables are set', { OTEL_SERVICE_NAME: 'mine', OTEL_TRACES_SAMPLER: 'always_on' }],
    ['it is disabled', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_SDK_DISABLED: 'true' }],
  ])('gives nothing when %s', async (_, environment) => {
    expect(await open(environment)).toBeUndefined();
  });
});

describe('traces', () => {
  let collector: TraceCollector;
  beforeAll(async () => {
    collector = await startTraceCollector();
  });
  afterAll(() => collector.close());
  const opened: Tracing[] = [];
  afterEach(async () => {
    for (const tracing of opened.splice(0)) await tracing.close();
  });

  const record = async (environment: Environment, closingMs?: number): Promise<Tracing> => {
    const usual = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' };
    const tracing = await open({ ...usual, ...environment }, closingMs);
    if (tracing === undefined) throw new Error('no traces');
    opened.push(tracing);
    return tracing;
  };
  const span = (tracing: Tracing, traceparent?: string) =>
    tracing.start('step', traceparent, { kind: 'server', attributes: {} });

  it('say what the service is', async () => {
    const tracing = await record({
      OTEL_SERVICE_NAME: 'mine',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=t%C3%A9st,service.name=theirs',
    });
    const recorded = span(tracing);
    recorded.end();
    await tracing.close();
    const [{ resource } = { resource: {} }] = await collector.trace(recorded.traceId, ['step']);
    expect(resource).toMatchObject({ 'service.name': 'mine', 'deployment.environment.name': 'tést' });
  });

  it('are protobuf unless JSON is asked for, and go below the path of the address', async () => {
    const bodies = await startTraceCollector();
    const tracing = await record({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${bodies.url}/otlp/`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20a2V5,content-type=text/plain',
    });
    span(tracing).end();
    await tracing.close();
    await bodies.close();
    expect(bodies.requests).toMatchObject([
      {
        path: '/otlp/v1/traces',
        headers: { 'content-type': 'application/x-protobuf', authorization: 'Basic a2V5' },
        body: expect.stringContaining('quillgate-api'),
      },
    ]);
  });

  const outside = (flags: string) => `00-${'a'.repeat(32)}-${'b'.repeat(16)}-${flags}`;
  it.each([
    ['parentbased_always_on', outside('00'), '00'],
    ['parentbased_always_on', undefined, '01'],
    ['parentbased_always_off', undefined, '00'],
    ['always_on', outside('00'), '01'],
    ['always_off', outside('01'), '00'],
    ['traceidratio', outside('01'), '00'],
    ['parentbased_traceidratio', undefined, '00'],
  ])('with %s continue %s with %s', async (sampler, traceparent, flags) => {
    const tracing = await record({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: '0' });
    expect(span(tracing, traceparent).traceparent.slice(-2)).toBe(flags);
    expect(
      span(tracing, traceparent).start('below', { kind: 'client', attributes: {} }).traceparent.slice(-2),
    ).toBe(flags);
  });

  it('cut long values, and have no values that are not known', async () => {
    const tracing = await record({});
    const recorded = span(tracing);
    recorded.set({ 'gen_ai.request.model': 'm'.repeat(5000), 'gen_ai.response.model': undefined });
    recorded.end();
    await tracing.close();
    const [{ attributes } = { attributes: {} }] = await collector.trace(recorded.traceId, ['step']);
    expect(attributes).toEqual({ 'gen_ai.request.model': 'm'.repeat(256) });
  });

  it.each([
    ['refuses them', 403, '10000'],
    ['is silent for longer than the timeout', 'never', '50'],
  ] as const)(
    'are dropped while the collector %s, which the log says once, without its words',
    async (_, answer, timeout) => {
      const before = logged.lines.length;
      const failing = await startTraceCollector({ answer });
      const tracing = await record({
        OTEL_EXPORTER_OTLP_ENDPOINT: failing.url,
        OTEL_EXPORTER_OTLP_TIMEOUT: timeout,
        OTEL_BSP_SCHEDULE_DELAY: '10',
      });
      for (const count of [1, 2]) {
        span(tracing).end();
        await vi.waitFor(() => expect(failing.requests).toHaveLength(count), patience);
      }
      await tracing.close();
      expect(logged.lines.slice(before)).toMatchObject([{ msg: 'traces not exported', spans: 1 }]);
      await failing.close();
    },
  );

  it('wait for a silent collector in bounded numbers, and not at the end', async () => {
    const silent = await startTraceCollector({ answer: 'never' });
    const hanging = { OTEL_EXPORTER_OTLP_ENDPOINT: silent.url, OTEL_EXPORTER_OTLP_TIMEOUT: '3600000' };
    const tracing = await record(hanging, 10);
    for (let n = 0; n < 6000; n += 1) span(tracing).end();
    await tracing.close();
    await vi.waitFor(() => expect(silent.requests.length).toBeGreaterThan(0), patience);
    expect(silent.spans().length).toBeLessThanOrEqual(2048 + 512);
    await silent.close();
  });
});
