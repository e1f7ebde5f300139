import type { ProviderId } from '../contracts/contract.js';
import { queueName } from '../protocol/messages.js';
import type { SpanAttributes, TraceSpan } from '../runtime/tracing.js';

/** The ids of a job in its spans. */
export interface SpannedJob {
  readonly id: string | undefined;
  readonly provider: ProviderId;
  /** Id of the chat; absent means the job's. */
  readonly chatId?: string | undefined;
  /** Absent means the first. */
  readonly attempt?: number | undefined;
}

/** The attributes of every span of a job: https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/. */
export const describeJob = ({ id, provider, chatId = id, attempt = 1 }: SpannedJob): SpanAttributes => ({
  'messaging.system': 'bullmq',
  'messaging.destination.name': queueName(provider),
  'messaging.message.id': id,
  'messaging.message.conversation_id': chatId,
  'quillgate.attempt': attempt,
});

/** Starts the span of the job's add, which is what the job is a step of. */
export const startSend = (trace: TraceSpan, job: SpannedJob): TraceSpan =>
  trace.start(`send ${queueName(job.provider)}`, {
    kind: 'producer',
    attributes: {
      ...describeJob(job),
      'messaging.operation.name': 'add',
      'messaging.operation.type': 'send',
    },
  });
