import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { ExportResultCode, parseTraceParent } from '@opentelemetry/core';
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base';
import {
  createOtlpHttpExportDelegate,
  httpAgentFactoryFromOptions,
} from '@opentelemetry/otlp-exporter-base/node-http';
import {
  JsonTraceSerializer,
  ProtobufTraceSerializer,
  TraceExporterMetricsHelper,
} from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Config } from '../config/config.js';
import { parsePairs, type SamplerName } from '../config/tracing-variables.js';
import type { Log } from './log.js';
import { release } from './release.js';
import type { SpanAttributes, SpanOptions, TraceSpan, Tracing } from './tracing.js';
import { withTimeout } from './with-timeout.js';

interface OtlpDeps {
  config: Config;
  endpoint: string;
  program: 'api' | 'worker';
  log: Log;
}

/** How long the last export may take at shutdown, in milliseconds. */
const closingMs = 1000;
/** Exports at once: one, and at shutdown all that waits, which is four batches of 512; one that is refused would end the others. */
const maxExports = 8;
/** Longer values are cut: no name or code is as long. */
const maxValueLength = 256;
/** Between two log lines that say that spans are lost, in milliseconds. */
const reportIntervalMs = 60_000;

/** Sends traces to an OpenTelemetry collector, by OTLP over HTTP. Registers nothing globally. */
export class OtlpTracing implements Tracing {
  readonly #provider: TracerProvider;
  readonly #tracer: ReturnType<TracerProvider['getTracer']>;

  constructor(deps: OtlpDeps) {
    const { config } = deps;
    const processor = new BatchSpanProcessor({
      exporter: createExporter(deps),
      scheduledDelayMillis: config.OTEL_BSP_SCHEDULE_DELAY,
      exportTimeoutMillis: config.OTEL_EXPORTER_OTLP_TIMEOUT * 2,
    });
    this.#provider = new TracerProvider({
      resource: resourceFromAttributes(describeService(deps)),
      sampler: createSampler(config.OTEL_TRACES_SAMPLER, config.OTEL_TRACES_SAMPLER_ARG),
      spanProcessors: [processor],
      spanLimits: { attributeValueLengthLimit: maxValueLength },
    });
    this.#tracer = this.#provider.getTracer('quillgate', release);
  }

  start(name: string, traceparent: string | undefined, options: SpanOptions): TraceSpan {
    return this.#start(name, readContext(traceparent), options);
  }

  async close(): Promise<void> {
    await withTimeout(closingMs, this.#provider.shutdown()).catch(() => undefined);
  }

  #start(name: string, context: Context, { kind, startedAt, attributes }: SpanOptions): TraceSpan {
    const options = {
      kind: kinds[kind],
      attributes: given(attributes),
      ...(startedAt && { startTime: startedAt }),
    };
    const span = this.#tracer.startSpan(name, options, context);
    const below = trace.setSpan(ROOT_CONTEXT, span);
    return new OtlpSpan(span, (child, childOptions) => this.#start(child, below, childOptions));
  }
}

const kinds: Record<SpanOptions['kind'], SpanKind> = {
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
};

function readContext(traceparent: string | undefined): Context {
  const parent = traceparent === undefined ? null : parseTraceParent(traceparent);
  return parent ? trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true }) : ROOT_CONTEXT;
}

const given = (attributes: SpanAttributes) =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));

class OtlpSpan implements TraceSpan {
  readonly #span: Span;
  readonly start: TraceSpan['start'];

  constructor(span: Span, start: TraceSpan['start']) {
    this.#span = span;
    this.start = start;
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  get traceparent(): string {
    const { traceId, spanId, traceFlags } = this.#span.spanContext();
    return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
  }

  rename(name: string): void {
    this.#span.updateName(name);
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes(given(attributes));
  }

  end({ error, at }: Parameters<TraceSpan['end']>[0] = {}): void {
    if (error !== undefined) {
      this.#span.setAttribute('error.type', error);
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end(at);
  }
}

function describeService({ config, program }: OtlpDeps) {
  return {
    'service.version': release,
    'service.instance.id': randomUUID(),
    'host.name': hostname(),
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.name': 'opentelemetry',
    'service.name': `quillgate-${program}`,
    ...config.OTEL_RESOURCE_ATTRIBUTES,
    ...(config.OTEL_SERVICE_NAME && { 'service.name': config.OTEL_SERVICE_NAME }),
  };
}

function createSampler(name: SamplerName, share: number): Sampler {
  const [, parent, root = ''] = /^(parentbased_)?(.*)$/.exec(name) ?? [];
  const sampler =
    root === 'traceidratio'
      ? new TraceIdRatioBasedSampler(share)
      : root === 'always_off'
        ? new AlwaysOffSampler()
        : new AlwaysOnSampler();
  return parent ? new ParentBasedSampler({ root: sampler }) : sampler;
}

/** Reports lost spans to the log; the collector's own words stay out of it. */
function createExporter({ config, endpoint, log }: OtlpDeps): SpanExporter {
  const isJson = config.OTEL_EXPORTER_OTLP_PROTOCOL === 'http/json';
  const mediaType = isJson ? 'application/json' : 'application/x-protobuf';
  const headers = { ...parsePairs(config.OTEL_EXPORTER_OTLP_HEADERS ?? ''), 'Content-Type': mediaType };
  const delegate = createOtlpHttpExportDelegate(
    {
      url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
      headers: async () => ({ ...headers }),
      timeoutMillis: config.OTEL_EXPORTER_OTLP_TIMEOUT,
      concurrencyLimit: maxExports,
      compression: CompressionAlgorithm.NONE,
      agentFactory: httpAgentFactoryFromOptions({ keepAlive: true }),
    },
    isJson ? JsonTraceSerializer : ProtobufTraceSerializer,
    'otlp_http_span_exporter',
    TraceExporterMetricsHelper,
    undefined,
  );
  let reportedAt = -Infinity;
  const report = (err: unknown, spans: number) => {
    if (performance.now() - reportedAt < reportIntervalMs) return;
    reportedAt = performance.now();
    log.warn({ err, spans }, 'traces not exported');
  };
  return {
    export: (spans, done) =>
      delegate.export(spans, (result) => {
        if (result.code !== ExportResultCode.SUCCESS) report(result.error, spans.length);
        done(result);
      }),
    forceFlush: () => delegate.forceFlush(),
    shutdown: () => delegate.shutdown(),
  };
}
