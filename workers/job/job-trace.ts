import type { ProviderId } from '../../shared/contracts/contract.js';
import { providerModels } from '../../shared/models/provider-models.js';
import { queueName } from '../../shared/protocol/messages.js';
import { nextOf } from '../../shared/protocol/outcome.js';
import { describeJob } from '../../shared/queue/add-attempt.js';
import { HandedBack } from '../../shared/queue/queue-store.js';
import type { SpanAttributes, TraceSpan, Tracing } from '../../shared/runtime/tracing.js';
import type { ProviderReply } from '../providers/provider.js';
import type { Next, TimedCall } from './call.js';
import { codeOfError, codeOfOutcome, type JobEnd } from './outcomes.js';

/** The facts of a running job that its spans describe. */
interface TracedJob {
  readonly id: string;
  readonly chatId: string;
  readonly provider: ProviderId;
  readonly queued: { readonly timestamp: number; readonly attemptsStarted: number };
  readonly facts: { readonly traceparent?: string | undefined; readonly attempt?: number | undefined };
  /** The store's clock, in milliseconds since the epoch. */
  readonly now: () => number;
}

/** The part of a chat's trace that one worker adds: the wait in the queue, the job, and each call of its provider. */
export class JobTrace {
  /** The span of the job, for the spans that belong to it elsewhere. */
  readonly traceparent: string;
  readonly logFields: { readonly traceId: string };
  readonly #span: TraceSpan;
  readonly #provider: ProviderId;
  #calls = 0;

  constructor(tracing: Tracing, job: TracedJob) {
    const { id, chatId, provider, queued, facts, now } = job;
    const { traceparent, attempt } = facts;
    const { timestamp, attemptsStarted } = queued;
    const queue = queueName(provider);
    const attributes = describeJob({ id, provider, chatId, attempt });
    const takenAt = Date.now();
    // A job that is taken again has not waited since it was enqueued.
    if (attemptsStarted <= 1) {
      const startedAt = takenAt - Math.max(0, now() - timestamp);
      tracing
        .start(`wait ${queue}`, traceparent, { kind: 'internal', startedAt, attributes })
        .end({ at: takenAt });
    }
    this.#provider = provider;
    this.#span = tracing.start(`process ${queue}`, traceparent, {
      kind: 'consumer',
      startedAt: takenAt,
      attributes: {
        ...attributes,
        'messaging.operation.name': 'process',
        'messaging.operation.type': 'process',
        'quillgate.job.starts': attemptsStarted,
      },
    });
    this.traceparent = this.#span.traceparent;
    this.logFields = { traceId: this.#span.traceId };
  }

  /** Ends the job's span: the job has ended, or `error` says why it goes on elsewhere. */
  end(end: JobEnd | undefined, error?: unknown): void {
    if (end === undefined)
      return void this.#span.end(error instanceof HandedBack ? {} : { error: codeOfError(error) });
    const code = codeOfOutcome(end.own);
    this.#span.set({ 'quillgate.code': code, 'quillgate.fallback': nextOf(end.outcome)?.provider });
    this.#span.end(end.own.kind === 'failed' ? { error: code } : {});
  }

  async watchCall(call: TimedCall, next: Next<TimedCall>): Promise<ProviderReply> {
    const startedAt = performance.now();
    const attributes = describeRequest(this.#provider, call);
    if (this.#calls > 0) attributes['http.request.resend_count'] = this.#calls;
    this.#calls += 1;
    const span = this.#span.start(`chat ${call.sent.model}`, { kind: 'client', attributes });
    const show = () => {
      span.set({ 'gen_ai.response.time_to_first_chunk': (performance.now() - startedAt) / 1000 });
      call.show();
    };
    try {
      const reply = await next({ ...call, traceparent: span.traceparent, show });
      span.set(describeReply(reply));
      span.end();
      return reply;
    } catch (error) {
      span.end({ error: codeOfError(error) });
      throw error;
    }
  }
}

const finishReasons: Record<ProviderReply['reason'], string> = {
  stop: 'stop',
  length: 'length',
  blocked: 'content_filter',
};

/**
 * The attributes of a call, without the texts to stop at, which are the caller's. Their names:
 * https://opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai/
 */
function describeRequest(provider: ProviderId, { sent, job }: TimedCall): SpanAttributes {
  const { model, maxOutputTokens, parameters = {} } = sent;
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': providerModels[provider].traceName,
    'gen_ai.request.model': model,
    ...(job.deltas && { 'gen_ai.request.stream': true }),
    'gen_ai.request.max_tokens': maxOutputTokens,
    'gen_ai.request.temperature': parameters.temperature,
    'gen_ai.request.top_p': parameters.topP,
    'gen_ai.request.frequency_penalty': parameters.frequencyPenalty,
    'gen_ai.request.presence_penalty': parameters.presencePenalty,
    'gen_ai.request.seed': parameters.seed,
  };
}

const describeReply = ({ reason, model, usage }: ProviderReply): SpanAttributes => ({
  'gen_ai.response.model': model,
  'gen_ai.response.finish_reasons': [finishReasons[reason]],
  'gen_ai.usage.input_tokens': usage?.inputTokens,
  'gen_ai.usage.output_tokens': usage?.outputTokens,
});
