import type { Turn } from '../../shared/conversation.js';
import { Failure } from '../../shared/failures.js';
import type { Mark } from '../../shared/protocol/parts.js';
import type { Provider, ProviderReply } from '../providers/provider.js';
import type { Breaker } from './breaker.js';
import type { Call } from './call.js';
import { isUnreachable } from './call-samples.js';
import { endInTime } from './call-signal.js';
import type { ImageRoom } from './image-room.js';
import { withOneRetry } from './retry.js';
import type { RunningJob } from './running-job.js';
import { NotBegun } from './waiting-jobs.js';

/** Makes the call, or has what follows in the chain make it. */
export type Next = (call: Call) => Promise<ProviderReply>;
type Step = (call: Call, next: Next) => Promise<ProviderReply>;

export interface CallChainDeps {
  provider: Provider;
  /** The breaker of what concerns the account, and so every model. */
  account: Pick<Breaker, 'state' | 'isProbing' | 'run'>;
  metrics: { watchCall: Step };
  /** Whether the job may go back to the queue when the provider cannot be reached from here. */
  mayRequeue: (job: Pick<RunningJob, 'id'>) => boolean;
  /** Gives stored images their `data`; `user` is the id of the one who sent them. */
  withImages?: ((turns: readonly Turn[], user?: string) => Promise<readonly Turn[]>) | undefined;
  /** That of all pools of this process; absent where there are no stored images. */
  imageRoom?: Pick<ImageRoom, 'run'> | undefined;
}

/** All that a call passes on its way to the provider of a pool, from the outside in. */
export function callChain(deps: CallChainDeps): Next {
  const steps: Step[] = [
    (call, next) => withOneRetry(call, next),
    (call, next) => requeueUnlessReached(call, next, deps),
    (call, next) => call.asked.circuit.run(call, next),
    (call, next) => passAccount(call, next, deps),
    (call, next) => (deps.imageRoom ? deps.imageRoom.run(call, next) : next(call)),
    (call, next) => deps.metrics.watchCall(call, next),
    endInTime,
    (call, next) => call.asked.job.trace?.watchCall(call, next) ?? next(call),
  ];
  return steps.reduceRight<Next>(
    (next, step) => (call) => step(call, next),
    (call) => ask(call, deps),
  );
}

/** A job whose call never reached the provider goes back to the queue, for a worker that does; or to its fallback. */
async function requeueUnlessReached(call: Call, next: Next, deps: CallChainDeps): Promise<ProviderReply> {
  try {
    return await next(call);
  } catch (error) {
    const { kind, hasBegun, asked } = call;
    const mayGoBack = !kind.isRetry && !asked.hasFallback && !hasBegun;
    if (mayGoBack && isUnreachable(error) && deps.mayRequeue(asked.job)) throw new NotBegun();
    throw error;
  }
}

async function passAccount(call: Call, next: Next, { account }: CallChainDeps): Promise<ProviderReply> {
  const { state, isProbing } = account;
  const isRefused = state === 'open' || (state === 'half-open' && isProbing);
  if (isRefused && !call.kind.isRetry)
    throw call.asked.hasFallback ? new Failure('provider_unavailable') : new NotBegun();
  call.asked.job.begin();
  return account.run(call, next);
}

async function ask(call: Call, { provider, withImages }: CallChainDeps): Promise<ProviderReply> {
  const { signal, onActivity, traceparent, asked, user } = call;
  const { request, ignored } = call.narrowed;
  const { deltas } = asked.job;
  asked.job.ignored = ignored;
  const onDelta =
    deltas &&
    ((text: string, mark?: Mark) => {
      if (!call.hasBegun) call.begin();
      deltas.append(text, mark);
    });
  const loading = withImages && request.turns.some(hasStoredImage) && withImages(request.turns, user);
  // It may take longer than the call has time, which then says more than how the reading ended.
  const turns = loading ? await loading.finally(() => signal.throwIfAborted()) : request.turns;
  return provider.run({ ...request, turns, signal, onActivity, traceparent }, onDelta);
}

const hasStoredImage = ({ content }: Turn): boolean =>
  typeof content !== 'string' && content.some((part) => part.type === 'image' && 'sha256' in part);
