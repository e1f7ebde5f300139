import type { Turn } from '../../shared/conversation.js';
import { Failure } from '../../shared/failures.js';
import { changesFor } from '../../shared/protocol/alternating-turns.js';
import { threadBytes } from '../../shared/queue/job-texts.js';
import type { Gate } from '../gate/gate.js';
import { type StandIns, standIn } from '../providers/long-texts.js';
import type { OnDelta, Provider, ProviderReply } from '../providers/provider.js';
import type { Call, Next, PassedCall, PreparedCall, TimedCall } from './call.js';
import { endInTime } from './call-signal.js';
import { mayOmit, narrow, refusedIn } from './model-request.js';
import type { RefusedParts } from './refused-parts.js';
import { type RetryDeps, withOneRetry } from './retry.js';

export interface CallChainDeps extends RetryDeps {
  provider: Provider;
  gate: Pick<Gate, 'run'>;
  metrics: { watchCall(call: PreparedCall, next: Next<PreparedCall>): Promise<ProviderReply> };
  /** Puts the texts of a long request into its body, in a thread. */
  fill?: ((body: string, texts: StandIns) => Promise<Uint8Array>) | undefined;
  /** Gives stored images their `data`; `user` is the id of the one who sent them. */
  withImages?: ((turns: readonly Turn[], user?: string) => Promise<readonly Turn[]>) | undefined;
}

/** All that a call passes on its way to the provider of a pool, from the outside in. */
export const callChain =
  (deps: CallChainDeps): Next<Call> =>
  (first) => {
    refuseIgnored(first, deps.provider);
    return withOneRetry(first, deps, (call) =>
      deps.gate.run(call, (passed) =>
        prepare(passed, deps, (prepared) =>
          deps.metrics.watchCall(prepared, (watched) =>
            endInTime(watched, (timed) => trace(timed, (last) => ask(last, deps))),
          ),
        ),
      ),
    );
  };

/** A reply that may take longer than this is asked for as a stream, which shows that it is written. */
const longMs = 60_000;

/** Throws for a hint that the provider's requests have no field for, if its caller is not to be answered without it. */
function refuseIgnored({ request, chatJob }: Call, provider: CallChainDeps['provider']): void {
  if (!chatJob.isStrict) return;
  const { ignores } = provider;
  const ignored = ignores && narrow(request, ignores).ignored;
  if (ignored) throw new Failure('provider_rejected', { refusedParameter: ignored[0] });
  // The API knows of all changes but those that servers at other addresses need.
  if (changesOf({ chatJob, request }, provider).includes('marked-system'))
    throw new Failure('provider_rejected', { refusedParameter: 'messages' });
}

type Taken = Pick<Provider, 'ignores' | 'keepsSystem'>;
type PrepareDeps = { refused: Pick<RefusedParts, 'has'>; provider: Taken };

const changesOf = ({ chatJob, request }: Pick<Call, 'chatJob' | 'request'>, { keepsSystem = false }: Taken) =>
  changesFor(chatJob.provider, request.turns, {
    keepsSystem: keepsSystem && !request.omits?.has('laterSystem'),
  });

/** Makes the request of a call that may begin, without what its provider has no field for, or its model refuses. */
export function prepare(call: PassedCall, { refused, provider }: PrepareDeps, next: Next<PreparedCall>) {
  const { job, request, omitted, isWhole, progress, chatJob } = call;
  const refusedBefore = isWhole ? [] : refusedIn(request, (key) => refused.has(call, key));
  const known = refusedBefore.filter((part) => mayOmit(part, chatJob));
  const without = new Set([...known, ...omitted, ...(provider.ignores ?? [])]);
  const { request: sent, ignored } = narrow(request, without);
  progress.sent = { request: sent, known };
  progress.ignored = ignored;
  const changes = changesOf({ chatJob, request: sent }, provider);
  progress.changes = changes.length > 0 ? changes : undefined;
  job.progress = progress;
  if (call.kind === 'first') job.begin();
  const showsLife = job.deltas !== undefined || call.pass.isProbe || call.leftMs() > longMs;
  const isStreamed = showsLife && !sent.omits?.has('stream');
  return next({ ...call, sent: { ...sent, isStreamed } });
}

const trace = (call: TimedCall, next: Next<TimedCall>): Promise<ProviderReply> =>
  call.job.trace?.watchCall(call, next) ?? next(call);

async function ask(call: TimedCall, { provider, withImages, fill }: CallChainDeps): Promise<ProviderReply> {
  const { job, sent, signal, onLife, onBegin, traceparent, user } = call;
  const { deltas } = job;
  const show: OnDelta | undefined =
    deltas &&
    ((...piece) => {
      if (!call.progress.isShown) call.show();
      deltas.append(...piece);
    });
  const onDelta = show && sent.reasoning === 'opaque' ? holdOpaque(show) : show;
  const loading = withImages && sent.turns.some(hasStoredImage) && withImages(sent.turns, user);
  // It may take longer than the call has time, which then says more than how the reading ended.
  const turns = loading ? await loading.finally(() => signal.throwIfAborted()) : sent.turns;
  const hooks = { signal, onLife, onBegin, traceparent };
  const { bytes = 0 } = call.chatJob.texts ?? {};
  const texts = bytes > threadBytes ? standIn(turns, provider) : undefined;
  const written =
    texts && fill ? { turns: texts.turns, fillBody: (body: string) => fill(body, texts) } : { turns };
  // Awaited, so that stack traces have this step.
  return await provider.run({ ...sent, ...hooks, ...written }, onDelta);
}

const hasStoredImage = ({ content }: Turn): boolean =>
  typeof content !== 'string' && content.some((part) => part.type === 'image' && 'sha256' in part);

/**
 * Holds opaque pieces back until there is a text or a call, and hands them out before it: until then no reader has seen
 * a part of the reply, and the call may be made once more.
 */
export function holdOpaque(next: OnDelta): OnDelta {
  let held: Parameters<OnDelta>[] | undefined = [];
  return (text, mark) => {
    if (held && mark?.kind === 'opaque') return void held.push([text, mark]);
    for (const piece of held ?? []) next(...piece);
    held = undefined;
    next(text, mark);
  };
}
