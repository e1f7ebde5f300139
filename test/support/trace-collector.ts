import { text } from 'node:stream/consumers';
import { vi } from 'vitest';
import { patience } from './patience.js';
import { serve } from './serve.js';

/** A span as OTLP's JSON has it, its attributes as one object. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: string;
  /** Whether it failed. */
  readonly hasFailed: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Of the program that has recorded it. */
  readonly resource: Readonly<Record<string, unknown>>;
  /** In milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
}

/** An OpenTelemetry collector that takes OTLP over HTTP as JSON. */
export interface TraceCollector {
  readonly url: string;
  /** Everything that was sent to it: path, headers and body. */
  readonly requests: readonly { path: string; headers: Record<string, unknown>; body: string }[];
  spans(): CollectedSpan[];
  /** Waits for spans of the trace with these names, and returns the trace in the order of its beginnings. */
  trace(traceId: string, names: readonly string[]): Promise<CollectedSpan[]>;
  close(): Promise<void>;
}

/** `answer` says what it answers with; `never` that it reads and keeps silent. */
export async function startTraceCollector({
  answer = 200 as number | 'never',
} = {}): Promise<TraceCollector> {
  const requests: TraceCollector['requests'][number][] = [];
  const served = await serve(async (request, response) => {
    const body = await text(request);
    requests.push({ path: request.url ?? '', headers: request.headers, body });
    if (answer === 'never') return;
    response.writeHead(answer, { 'Content-Type': 'application/json' }).end('{}');
  });
  const spans = () => requests.flatMap(({ body }) => toSpans(JSON.parse(body)));
  const trace: TraceCollector['trace'] = (traceId, names) =>
    vi.waitFor(() => {
      const found = spans().filter((span) => span.traceId === traceId);
      const missing = names.filter((name) => !found.some((span) => span.name === name));
      if (missing.length > 0) throw new Error(`no ${missing.join()} among ${found.map(({ name }) => name)}`);
      return found.sort((a, b) => a.startedAt - b.startedAt);
    }, patience);
  return { url: served.url, requests, spans, trace, close: served.close };
}

// biome-ignore lint/suspicious/noExplicitAny: OTLP's JSON, of which a test says what it expects.
type Json = any;

function toSpans({ resourceSpans }: Json): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }: Json) =>
    scopeSpans.flatMap(({ spans }: Json) => spans.map((span: Json) => toSpan(span, resource))),
  );
}

const kinds = ['', 'internal', 'server', 'client', 'producer', 'consumer'];

const toSpan = (span: Json, resource: Json): CollectedSpan => ({
  traceId: span.traceId,
  spanId: span.spanId,
  parentSpanId: span.parentSpanId,
  name: span.name,
  kind: kinds[span.kind] ?? '',
  hasFailed: span.status?.code === 2,
  attributes: toObject(span.attributes),
  resource: toObject(resource.attributes),
  startedAt: Number(span.startTimeUnixNano) / 1e6,
  endedAt: Number(span.endTimeUnixNano) / 1e6,
});

const toObject = (attributes: Json[] = []): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, toValue(value)]));

function toValue(value: Json): unknown {
  if ('arrayValue' in value) return value.arrayValue.values.map(toValue);
  return 'intValue' in value ? Number(value.intValue) : Object.values(value)[0];
}
