import { randomUUID } from 'node:crypto';
import type { Turn } from '../../shared/conversation.js';
import { Failure, type FailureCode, type TimeLimit } from '../../shared/failures.js';
import { type Filling, fillText } from '../../shared/json/json-worker.js';
import { changesFor } from '../../shared/protocol/alternating-turns.js';
import type { RequestBody } from '../../shared/protocol/request-body.js';
import { threadBytes } from '../../shared/queue/blobs.js';
import type { Gate } from '../gate/gate.js';
import { CutForFallback } from '../gate/gated-call.js';
import {
  type OnDelta,
  type Provider,
  type ProviderReply,
  type ProviderRequest,
  standIn,
  type WrittenBody,
} from '../providers/provider.js';
import type { Call, MeteredCall, Next, PassedCall, PreparedCall, TimedCall } from './call.js';
import { meter } from './meter.js';
import { imageBytesOf, mayOmit, narrow, refusedIn } from './model-request.js';
import type { RefusedParts } from './refused-parts.js';
import { minTimeLeftMs, type RetryDeps, withOneRetry } from './retry.js';

export interface CallChainDeps extends RetryDeps {
  provider: Provider;
  gate: Pick<Gate, 'run'>;
  metrics: { watchCall(call: PreparedCall, next: Next<PreparedCall>): Promise<ProviderReply> };
  /** Puts the texts of a long request into its body, in a thread. */
  fill?: ((body: string, texts: Omit<Filling, 'text'>) => Promise<Uint8Array>) | undefined;
  /** Gives stored images their `data`; `user` is the id of the one who sent them. */
  withImages?: ((turns: readonly Turn[], user?: string) => Promise<readonly Turn[]>) | undefined;
  /** Gives blobs of a user in base64, by their digests. */
  loadBlobs?:
    | ((blobs: RequestBody['blobs'], user?: string) => Promise<ReadonlyMap<string, string>>)
    | undefined;
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
            meter(watched, (metered) =>
              endInTime(metered, (timed) => trace(timed, (last) => ask(last, deps))),
            ),
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

async function ask(
  call: TimedCall,
  { provider, withImages, loadBlobs, fill }: CallChainDeps,
): Promise<ProviderReply> {
  const { job, sent, signal, onLife, onBegin, traceparent, user, meter } = call;
  const { deltas } = job;
  const show: OnDelta | undefined =
    deltas &&
    ((...piece) => {
      if (!call.progress.isShown) call.show();
      deltas.append(...piece);
    });
  const onDelta = show && sent.reasoning === 'opaque' ? holdOpaque(show) : show;
  const hooks = { signal, onLife, onBegin, traceparent, meter };
  if (sent.body) {
    const fillBody = await loadBody(sent.body, { user, loadBlobs, fill }).finally(() =>
      signal.throwIfAborted(),
    );
    return await provider.run({ ...sent, ...hooks, fillBody }, onDelta);
  }
  const loading = withImages && imageBytesOf(sent) > 0 && withImages(sent.turns, user);
  // It may take longer than the call has time, which then says more than how the reading ended.
  const turns = loading ? await loading.finally(() => signal.throwIfAborted()) : sent.turns;
  const { bytes = 0 } = call.chatJob.texts ?? {};
  const texts = bytes > threadBytes ? standIn(turns, provider) : undefined;
  const written =
    texts && fill ? { turns: texts.turns, fillBody: (body: string) => fill(body, texts) } : { turns };
  // Awaited, so that stack traces have this step.
  return await provider.run({ ...sent, ...hooks, ...written }, onDelta);
}

/** Reads what lies beside a body, and gives the function that puts it in its place. */
async function loadBody(
  { blobs }: WrittenBody,
  { user, loadBlobs, fill }: Pick<CallChainDeps, 'loadBlobs' | 'fill'> & { user?: string | undefined },
): Promise<ProviderRequest['fillBody']> {
  const loaded = blobs.length > 0 ? await loadBlobs?.(blobs, user) : undefined;
  const texts = blobs.map(({ sha256 }) => loaded?.get(sha256) ?? '');
  if (texts.length === 0) return undefined;
  return async (text) => {
    const mark = `blob-${randomUUID()}-`;
    const marked = text.split('\n').map((piece, n) => (n === 0 ? piece : `${mark}${n - 1}.${piece}`));
    const filling = { text: marked.join(''), mark, texts };
    const length = text.length + texts.reduce((sum, each) => sum + each.length, 0);
    return fill && length > threadBytes ? fill(filling.text, filling) : fillText(filling).bytes;
  };
}

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

/** Makes the call with a signal of its own, which ends it in time. */
async function endInTime<T>(call: MeteredCall, next: (call: TimedCall) => Promise<T>): Promise<T> {
  const signal = new CallSignal(call);
  const show = () => {
    signal.show();
    call.show();
  };
  const life = { onLife: () => signal.recordLife(), onBegin: () => signal.begin() };
  try {
    return await next({ ...call, ...life, signal: signal.signal, show });
  } finally {
    signal.release();
  }
}

/**
 * A signal of its own for every provider call. It aborts with `provider_timeout` when the provider takes too long, with
 * `timeout` when the caller's deadline comes first, or with the reason of `stop`. A stream is also bounded by the
 * provider's silence: until its first sign of life, and then between two of them. Once a part of it is shown, the
 * deadline alone bounds the whole, and its silence is that of a reply which is being written.
 * Not `AbortSignal.any`: a call's signal must not stay registered at the job's after the call.
 */
export class CallSignal {
  readonly #controller = new AbortController();
  readonly signal = this.#controller.signal;
  readonly #onStop: () => void;
  /** Ends the call, however much the provider sends. */
  #whole: NodeJS.Timeout;
  /** Ends a stream that is silent; undefined while its silence says nothing. */
  #silence: NodeJS.Timeout | undefined;
  /** Ends a stream that has not begun, for its fallback. */
  #cut: NodeJS.Timeout | undefined;

  constructor(private readonly call: PreparedCall) {
    const { job, sent, deadline, stop, hasFallback } = call;
    const { timeoutMs, fallbackAfterMs = Number.POSITIVE_INFINITY } = call.settings;
    const callerMs = this.#msUntil(deadline);
    this.#whole =
      callerMs <= timeoutMs
        ? this.#abortAfter(callerMs, { code: 'timeout' })
        : this.#abortAt({ ms: timeoutMs, setting: 'timeoutMs' });
    if (sent.isStreamed)
      this.#silence = this.#abortAt({ ms: firstTokenMsOf(call), setting: 'firstTokenTimeoutMs' });
    const mayBeCut = job.deltas && hasFallback;
    if (mayBeCut && fallbackAfterMs + minTimeLeftMs <= callerMs)
      this.#cut = this.#abortAt({ ms: fallbackAfterMs, setting: 'fallbackAfterMs' }, new CutForFallback());
    this.#onStop = () => this.#controller.abort(stop.reason);
    if (stop.aborted) this.#onStop();
    stop.addEventListener('abort', this.#onStop, { once: true });
  }

  /** To be called for each sign of life. */
  recordLife(): void {
    const { progress } = this.call;
    if (progress.isAlive) return void this.#silence?.refresh();
    progress.isAlive = true;
    this.call.pass.onLife();
    if (this.#silence) this.#listen();
  }

  /** To be called for the first part of the reply, whether or not it is shown. */
  begin(): void {
    const { progress, sent } = this.call;
    progress.hasBegun = true;
    clearTimeout(this.#cut);
    if (sent.isStreamed) this.#listen();
  }

  /** To be called when the first part of a stream is shown. */
  show(): void {
    const { chatJob, progress } = this.call;
    progress.isShown = true;
    clearTimeout(this.#whole);
    this.#whole = this.#abortAfter(this.#msUntil(chatJob.deadline), { code: 'timeout' });
    this.#listen();
  }

  release(): void {
    for (const timer of [this.#whole, this.#silence, this.#cut]) clearTimeout(timer);
    this.#silence = undefined;
    this.call.stop.removeEventListener('abort', this.#onStop);
  }

  /** Bounds the silence from now on. A model may think for longer than it may pause while it writes. */
  #listen(): void {
    const { progress, settings } = this.call;
    const { idleTimeoutMs, firstTokenTimeoutMs } = settings;
    const isIdle = progress.isShown || idleTimeoutMs >= firstTokenTimeoutMs;
    clearTimeout(this.#silence);
    this.#silence = this.#abortAt(
      isIdle
        ? { ms: idleTimeoutMs, setting: 'idleTimeoutMs', fellSilent: true }
        : { ms: firstTokenTimeoutMs, setting: 'firstTokenTimeoutMs', fellSilent: true },
    );
  }

  #msUntil(time: number): number {
    return Math.max(0, time - this.call.job.now());
  }

  #abortAt(limit: TimeLimit, cause?: Error): NodeJS.Timeout {
    return this.#abortAfter(limit.ms, { code: 'provider_timeout', facts: { limit, cause } });
  }

  #abortAfter(ms: number, { code, facts }: { code: FailureCode; facts?: Failure['facts'] }): NodeJS.Timeout {
    return setTimeout(() => this.#controller.abort(new Failure(code, facts)), ms);
  }
}

const firstTokenMsOf = ({ hasFallback, settings }: PreparedCall): number =>
  (hasFallback ? settings.firstTokenBeforeFallbackMs : undefined) ?? settings.firstTokenTimeoutMs;
