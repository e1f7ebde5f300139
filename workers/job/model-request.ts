import type { PoolConfig } from '../../shared/config/pool-config.js';
import { Failure } from '../../shared/failures.js';
import { isModelAllowed } from '../../shared/model-names.js';
import type { ChatJob } from '../../shared/protocol/messages.js';
import { parametersFor } from '../../shared/protocol/model-parameters.js';
import type { FinishReason, ProviderRequest } from '../providers/provider.js';

/** The request of a job to its provider, the same in each of its calls. */
export type ModelRequest = Omit<ProviderRequest, 'signal' | 'onActivity' | 'traceparent'>;

/** A job's request, within the limits of its pool. Throws `invalid_request` without a model that callers may name. */
export function toModelRequest(
  job: Pick<ChatJob, 'provider' | 'model' | 'turns' | 'parameters'>,
  settings: PoolConfig,
) {
  const model = job.model ?? settings.model;
  const { model: defaultModel, models, environment } = settings;
  // The API has checked this, but not where it has not heard of this pool yet.
  if (model === undefined || !isModelAllowed(model, { defaultModel, models, environment }))
    throw new Failure('invalid_request');
  const { maxOutputTokens = settings.maxOutputTokens, ...parameters } = parametersFor(
    job.provider,
    job.parameters ?? {},
  );
  return {
    turns: job.turns,
    model,
    maxOutputTokens: Math.min(maxOutputTokens, settings.maxOutputTokens),
    parameters,
    mayBeBlankAt: blankEndsOf(job.parameters),
  } satisfies ModelRequest;
}

/** A model may begin with a text to stop at, and one that thinks may use up the limit before it writes. */
function blankEndsOf({ stop, maxOutputTokens }: NonNullable<ChatJob['parameters']> = {}): FinishReason[] {
  return [...(stop ? (['stop'] as const) : []), ...(maxOutputTokens ? (['length'] as const) : [])];
}
