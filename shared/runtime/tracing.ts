import type { Config } from '../config/config.js';
import type { Log } from './log.js';

/**
 * The attributes of spans: ids, codes, numbers, models. A closed list without texts, addresses, credentials or users,
 * because traces often leave the house.
 */
export interface SpanAttributes {
  'http.request.method'?: string | undefined;
  /** The route's pattern. */
  'http.route'?: string | undefined;
  'http.response.status_code'?: number | undefined;
  /** Present in the second call of a job. */
  'http.request.resend_count'?: number | undefined;
  'network.protocol.version'?: string | undefined;
  'url.scheme'?: string | undefined;
  'messaging.system'?: 'bullmq';
  'messaging.destination.name'?: string | undefined;
  'messaging.message.id'?: string | undefined;
  /** Id of the chat, which is the same for all its attempts. */
  'messaging.message.conversation_id'?: string | undefined;
  'messaging.operation.name'?: 'add' | 'process';
  'messaging.operation.type'?: 'send' | 'process';
  'gen_ai.operation.name'?: 'chat';
  'gen_ai.provider.name'?: string | undefined;
  'gen_ai.request.model'?: string | undefined;
  'gen_ai.request.stream'?: boolean | undefined;
  'gen_ai.request.max_tokens'?: number | undefined;
  'gen_ai.request.temperature'?: number | undefined;
  'gen_ai.request.top_p'?: number | undefined;
  'gen_ai.request.frequency_penalty'?: number | undefined;
  'gen_ai.request.presence_penalty'?: number | undefined;
  'gen_ai.request.seed'?: number | undefined;
  'gen_ai.response.model'?: string | undefined;
  'gen_ai.response.finish_reasons'?: string[] | undefined;
  /** In seconds. */
  'gen_ai.response.time_to_first_chunk'?: number | undefined;
  'gen_ai.usage.input_tokens'?: number | undefined;
  'gen_ai.usage.output_tokens'?: number | undefined;
  /** The end of a request, a job or a call: `ok`, or the code of its failure. */
  'quillgate.code'?: string | undefined;
  'quillgate.request.id'?: string | undefined;
  /** Who answered. */
  'quillgate.provider'?: string | undefined;
  /** From 1. */
  'quillgate.attempt'?: number | undefined;
  /** To which provider the chat was passed on. */
  'quillgate.fallback'?: string | undefined;
  /** How often workers have taken the job, this time included. */
  'quillgate.job.starts'?: number | undefined;
}

export interface SpanOptions {
  kind: 'server' | 'producer' | 'consumer' | 'client' | 'internal';
  /** In milliseconds since the epoch; absent means now. */
  startedAt?: number;
  attributes: SpanAttributes;
}

/** One step of a trace, under way. */
export interface TraceSpan {
  readonly traceId: string;
  /** Names this span to the services it calls (https://www.w3.org/TR/trace-context/#traceparent-header). */
  readonly traceparent: string;
  /** Starts a step of this one. */
  start(name: string, options: SpanOptions): TraceSpan;
  rename(name: string): void;
  set(attributes: SpanAttributes): void;
  /** Ends it, as failed when there is an `error`: a code. */
  end(how?: { error?: string | undefined; at?: number }): void;
}

/** The dependencies of the program's traces. */
export interface TracingDeps {
  config: Config;
  program: 'api' | 'worker';
  log: Log;
  /** How long the last export may take at shutdown, in milliseconds. */
  closingMs?: number;
}

/** Records traces. */
export interface Tracing {
  /** Starts a span below the one that `traceparent` names; one that cannot be read counts as absent. */
  start(name: string, traceparent: string | undefined, options: SpanOptions): TraceSpan;
  /** Exports what is left, within a second. */
  close(): Promise<void>;
}
