import { hostname } from 'node:os';
import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { ExportResultCode, parseTraceParent } from '@opentelemetry/core';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  type Resource,
  resourceAttributesEnvDetector,
  serviceInstanceIdDetector,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Config } from '../config/config.js';
import type { Log } from './log.js';
import { release } from './program.js';
import { withTimeout } from './retry.js';
import type { TraceSpan, Tracing, TracingDeps } from './tracing.js';

/** Longer values are cut: no name or code is as long. */
const maxValueLength = 256;
/** Between two log lines that say that spans are lost, in milliseconds. */
const reportIntervalMs = 60_000;

/** Sends traces by OTLP over HTTP, and registers nothing globally. Exporters and detectors read the environment. */
export function openOtlpTracing({ config, program, log, closingMs = 1000 }: TracingDeps): Tracing {
  const processor = new BatchSpanProcessor({
    exporter: createExporter(config, log),
    scheduledDelayMillis: config.OTEL_BSP_SCHEDULE_DELAY,
    exportTimeoutMillis: config.OTEL_EXPORTER_OTLP_TIMEOUT * 2,
  });
  const provider = new TracerProvider({
    resource: describeService(program),
    sampler: createSampler(config),
    spanProcessors: [processor],
    spanLimits: { attributeValueLengthLimit: maxValueLength },
  });
  const tracer = provider.getTracer('quillgate', release);
  return {
    start: (name, traceparent, options) => startBelow(readContext(traceparent), tracer)(name, options),
    close: () => withTimeout(closingMs, provider.shutdown()).catch(() => undefined),
  };
}

function readContext(traceparent = ''): Context {
  const parent = parseTraceParent(traceparent);
  return parent ? trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true }) : ROOT_CONTEXT;
}

/** Starts spans below the one of the context. */
const startBelow =
  (context: Context, tracer: Tracer): TraceSpan['start'] =>
  (name, { kind: kindName, startedAt, attributes }) => {
    const kind = SpanKind[kindName.toUpperCase() as Uppercase<typeof kindName>];
    const startTime = startedAt === undefined ? {} : { startTime: startedAt };
    const span = tracer.startSpan(name, { kind, attributes: { ...attributes }, ...startTime }, context);
    const { traceId, spanId, traceFlags } = span.spanContext();
    return {
      traceId,
      traceparent: `00-${traceId}-${spanId}-0${traceFlags}`,
      start: startBelow(trace.setSpan(ROOT_CONTEXT, span), tracer),
      rename: (to) => void span.updateName(to),
      set: (more) => void span.setAttributes({ ...more }),
      end: ({ error, at } = {}) => {
        if (error !== undefined)
          span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR });
        span.end(at);
      },
    };
  };

/** The environment comes last, and so wins. */
function describeService(program: string): Resource {
  const ours = {
    'service.name': `quillgate-${program}`,
    'service.version': release,
    'host.name': hostname(),
  };
  const fromEnvironment = [resourceAttributesEnvDetector, serviceNameEnvDetector];
  const detectors = [serviceInstanceIdDetector, { detect: () => ({ attributes: ours }) }, ...fromEnvironment];
  return defaultResource().merge(detectResources({ detectors }));
}

/** Creates the sampler that OTEL_TRACES_SAMPLER names; all and none are shares as well. */
function createSampler({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: share }: Config): Sampler {
  const root = new TraceIdRatioBasedSampler(name.endsWith('_on') ? 1 : name.endsWith('_off') ? 0 : share);
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

/** Reports lost spans to the log; the collector's own words stay out of it. */
function createExporter({ OTEL_EXPORTER_OTLP_PROTOCOL: protocol }: Config, log: Log): SpanExporter {
  const exporter: SpanExporter = protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter();
  const send = exporter.export.bind(exporter);
  let reportedAt = -Infinity;
  exporter.export = (spans, done) =>
    send(spans, (result) => {
      const isDue = performance.now() - reportedAt >= reportIntervalMs;
      if (result.code !== ExportResultCode.SUCCESS && isDue) {
        reportedAt = performance.now();
        log.warn({ err: result.error, spans: spans.length }, 'traces not exported');
      }
      done(result);
    });
  return exporter;
}
