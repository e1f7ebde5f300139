import type { ProviderId } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import type { RecentRequest, RequestAttempt, RequestCode } from '../../shared/history.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import type { ChatCommand, ResolvedChat } from './chat-command.js';
import { isCompletion } from './chat-result.js';

/** Where operators see what came and how it ended. Called for every chat: it must be cheap, and never throw. */
export interface ChatHistory {
  recordArrival(provider: ProviderId): void;
  recordEnd(request: RecentRequest): void;
}

/** Names of models are chosen by callers and providers. */
const maxModelLength = 200;

/** Follows one command's chat until it ends, and records that once. What is joined ends for each who joins; they have one id. */
export class ChatEnding {
  readonly #history: ChatHistory | undefined;
  readonly #command: ChatCommand;
  /** By the process's clock, less what the request had taken before. */
  readonly #startedAt: number;
  readonly #receivedAt: number;
  #chat: ResolvedChat['chat'] | undefined;
  #queuedMs: number | undefined;
  #isDetached = false;
  #isOver: boolean;

  private constructor(command: ChatCommand, history: ChatHistory | undefined) {
    const { elapsedMs = 0 } = command;
    this.#history = history;
    this.#command = command;
    this.#startedAt = performance.now() - elapsedMs;
    this.#receivedAt = Date.now() - elapsedMs;
    this.#isOver = history === undefined;
    history?.recordArrival(command.provider);
  }

  /** Runs what creates the command's chat; it may settle, follow or forget the ending, else what it fails with is recorded. */
  static async watch<T>(
    command: ChatCommand,
    history: ChatHistory | undefined,
    create: (ending: ChatEnding) => Promise<T>,
  ): Promise<T> {
    const ending = new ChatEnding(command, history);
    try {
      return await create(ending);
    } catch (error) {
      ending.#fail(error);
      throw error;
    }
  }

  /** The chat's job is given to the queue. */
  recordQueued(chat: ResolvedChat['chat']): void {
    this.#chat = chat;
    this.#queuedMs = this.#elapsedMs;
  }

  /**
   * The chat goes on without its request: what that fails with is not its end. It ends as this wait does, which rejects if the queue did not
   * take its job; another one has it if it was `joined`. Resolves then.
   */
  async follow(wait: Promise<Outcome | 'joined' | undefined>): Promise<void> {
    this.#isDetached = true;
    try {
      const outcome = await wait;
      if (outcome !== 'joined') this.settle(outcome);
    } catch {
      this.#record('queue_unavailable');
    }
  }

  /** The chat had ended before its request came. */
  forget(): void {
    this.#isOver = true;
  }

  /** Without an outcome its deadline has passed. */
  settle(outcome: Outcome | undefined): void {
    if (outcome === undefined) this.#record('timeout');
    else this.#record(outcome.kind === 'failed' ? outcome.code : outcome.kind, outcome);
  }

  #fail(error: unknown): void {
    if (this.#isDetached) return;
    if (this.#command.signal.aborted) this.#record('cancelled');
    else this.#record(error instanceof Failure ? error.code : 'internal');
  }

  get #elapsedMs(): number {
    return performance.now() - this.#startedAt;
  }

  #record(code: RequestCode, outcome?: Outcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { requestId, user, userName = user, provider, stream } = this.#command;
    const model = outcome && isCompletion(outcome) ? outcome.model : this.#command.model;
    const endedMs = this.#elapsedMs;
    this.#history?.recordEnd({
      id: this.#chat?.id ?? requestId,
      user: userName,
      provider,
      ...(model !== undefined && { model: model.slice(0, maxModelLength) }),
      streamed: stream !== undefined,
      receivedAt: new Date(this.#receivedAt).toISOString(),
      ...timesOf(outcome, this.#queuedMs, endedMs),
      endedMs: Math.round(endedMs),
      code,
      attempts: this.#attempts(code, outcome),
      ...(outcome && tokensOf(outcome)),
    });
  }

  #attempts(code: RequestCode, outcome: Outcome | undefined): RequestAttempt[] {
    if (this.#chat === undefined) return [];
    const { earlier = [], provider, model } = this.#chat.current;
    const only = { ...(model !== undefined && { model }), provider, code: attemptCodes[code] ?? code };
    const attempts = outcome?.attempts ?? [...earlier, only as RequestAttempt];
    return attempts.map(({ provider, model, code }) => ({
      provider,
      ...(model !== undefined && { model: model.slice(0, maxModelLength) }),
      code,
    }));
  }
}

/** What the code of a chat is for its only attempt, where that is another. */
const attemptCodes: { readonly [Code in RequestCode]?: RequestAttempt['code'] } = {
  truncated: 'ok',
  blocked: 'content_blocked',
};

type Times = Pick<RecentRequest, 'queuedMs' | 'startedMs' | 'firstTokenMs' | 'queueMs' | 'providerMs'>;

/** Each is at least the one before and at most the end: they are measured by several machines. */
function timesOf(outcome: Outcome | undefined, queuedMs: number | undefined, endedMs: number): Times {
  if (queuedMs === undefined) return {};
  const queued = Math.round(queuedMs);
  if (outcome === undefined || !hasBegun(outcome)) return { queuedMs: queued };
  const { queueMs, providerMs, firstTokenMs, attempts } = outcome;
  const between = (ms: number, from: number) => Math.round(Math.max(from, Math.min(ms, endedMs)));
  const firstQueueMs = attempts?.find((attempt) => attempt.queueMs !== undefined)?.queueMs ?? queueMs;
  const startedMs = between(queuedMs + firstQueueMs, queued);
  const earlierMs = attempts ? providerMs - (attempts.at(-1)?.providerMs ?? 0) : 0;
  return {
    queuedMs: queued,
    startedMs,
    ...(firstTokenMs !== undefined && {
      firstTokenMs: between(queuedMs + queueMs + earlierMs + firstTokenMs, startedMs),
    }),
    queueMs: Math.max(0, Math.round(queueMs)),
    providerMs: Math.max(0, Math.round(providerMs)),
  };
}

/** Whether a worker has called a provider for it. */
const hasBegun = (outcome: Outcome): boolean => isCompletion(outcome) || outcome.providerMs > 0;

function tokensOf(outcome: Outcome): Pick<RecentRequest, 'inputTokens' | 'outputTokens'> {
  const own = 'usage' in outcome ? outcome.usage : undefined;
  const all = outcome.attempts?.flatMap(({ usage }) => usage ?? []) ?? (own ? [own] : []);
  if (all.length === 0) return {};
  return {
    inputTokens: all.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
    outputTokens: all.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
  };
}
