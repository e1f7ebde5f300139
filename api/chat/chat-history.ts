import type { ProviderId } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import type { RecentRequest, RequestAttempt, RequestCode } from '../../shared/history.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import type { ChatCommand, ResolvedChat } from './chat-command.js';
import { isCompletion } from './chat-result.js';

/** Where operators see what came and how it ended. Called for every chat: it must be cheap, and never throw. */
export interface ChatHistory {
  recordArrival(provider: ProviderId): void;
  /** `user` is the id of its user. */
  recordEnd(request: RecentRequest, user: string): void;
}

/** Names of models are chosen by callers and providers. */
const maxModelLength = 200;

/**
 * Records of each chat of this process that it came, and how it ended: both once, however many requests join it. It has come when its job is
 * queued, or it is refused; a request whose chat had ended before brings none.
 */
export class ChatEndings {
  readonly #history: ChatHistory | undefined;
  /** By id of the chat: that of the first request here. */
  readonly #underWay = new Map<string, ChatEnding>();

  constructor(history: ChatHistory | undefined) {
    this.#history = history;
  }

  /** Runs what creates the command's chat; it may settle, follow or forget the ending, else what it fails with is recorded. */
  async watch<T>(command: ChatCommand, create: (ending: ChatEnding) => Promise<T>): Promise<T> {
    const ending = new ChatEnding(command, { history: this.#history, underWay: this.#underWay });
    try {
      return await create(ending);
    } catch (error) {
      ending.fail(error);
      throw error;
    }
  }
}

interface EndingDeps {
  history: ChatHistory | undefined;
  underWay: Map<string, ChatEnding>;
}

/** How a chat ended, as far as this process knows, and when. */
interface End {
  readonly outcome?: Outcome | undefined;
  readonly endedMs?: number;
}

/** Follows one command's chat until it ends. */
export class ChatEnding {
  readonly #deps: EndingDeps;
  readonly #command: ChatCommand;
  /** By the process's clock, less what the request had taken before. */
  readonly #startedAt: number;
  readonly #receivedAt: number;
  /** That of the request with which the chat came here: it records the end, though others may see it. */
  #first: ChatEnding = this;
  /** Of the first: requests that have not left the chat. */
  #followers = 1;
  #chat: ResolvedChat['chat'] | undefined;
  #onAnswer: ResolvedChat['onAnswer'];
  #queuedMs: number | undefined;
  #isDetached = false;
  #cut: Promise<Outcome | 'joined' | undefined> | undefined;
  #isOver = false;

  constructor(command: ChatCommand, deps: EndingDeps) {
    const { elapsedMs = 0 } = command;
    this.#deps = deps;
    this.#command = command;
    this.#startedAt = performance.now() - elapsedMs;
    this.#receivedAt = Date.now() - elapsedMs;
  }

  /** The chat's job is given to the queue, by this request or, if it joins the chat, once more. */
  recordQueued(chat: ResolvedChat['chat'], onAnswer?: ResolvedChat['onAnswer']): void {
    if (this.#isOver) return;
    const { history, underWay } = this.#deps;
    const first = underWay.get(chat.id);
    if (first) {
      first.#followers += 1;
      this.#first = first;
      return;
    }
    this.#chat = chat;
    this.#onAnswer = onAnswer;
    this.#queuedMs = this.#elapsedMs;
    underWay.set(chat.id, this);
    history?.recordArrival(this.#command.provider);
  }

  /**
   * The chat goes on without its request: what that fails with is not its end. It ends as this wait does: without an outcome its deadline has
   * passed, it rejects if the queue did not take the job, and if it was `joined` another request waits in the background. Resolves then.
   */
  async follow(wait: Promise<Outcome | 'joined' | undefined>): Promise<void> {
    this.#isDetached = true;
    try {
      const outcome = await wait;
      if (outcome === 'joined') this.#leave('cancelled');
      else if (outcome === undefined) this.#leave('timeout');
      else this.settle(outcome);
    } catch {
      this.#leave('queue_unavailable');
    }
  }

  /** The job is being cut because its request fails: its outcome has the worker's times. */
  awaitCut(outcome: Promise<Outcome | 'joined' | undefined>): void {
    this.#cut = outcome.catch(() => undefined);
  }

  /** The chat had ended before its request came. */
  forget(): void {
    this.#isOver = true;
  }

  settle(outcome: Outcome): void {
    this.#first.#record(outcome.kind === 'failed' ? outcome.code : outcome.kind, { outcome });
  }

  /** The request has failed, and with it the chat unless others follow it. */
  fail(error: unknown): void {
    if (this.#isDetached) return;
    const own = error instanceof Failure ? error.code : 'internal';
    const code = this.#command.signal.aborted ? 'cancelled' : own;
    const endedMs = this.#elapsedMs;
    const record = (cut?: Outcome | 'joined') =>
      this.#leave(code, { endedMs, ...(cut !== 'joined' && { outcome: cut }) });
    if (this.#cut) void this.#cut.then(record);
    else record();
  }

  /** What the last request saw that followed the chat is its end. */
  #leave(code: RequestCode, end?: End): void {
    this.#first.#followers -= 1;
    if (this.#first.#followers === 0) this.#first.#record(code, end);
  }

  get #elapsedMs(): number {
    return performance.now() - this.#startedAt;
  }

  #record(code: RequestCode, { outcome, endedMs = this.#elapsedMs }: End = {}): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { history, underWay } = this.#deps;
    if (outcome) this.#onAnswer?.(isCompletion(outcome) ? Buffer.byteLength(outcome.text) : 0);
    if (this.#chat) underWay.delete(this.#chat.id);
    else history?.recordArrival(this.#command.provider);
    const { requestId, user, userName = user, provider, stream } = this.#command;
    const model = outcome && isCompletion(outcome) ? outcome.model : this.#command.model;
    const request: RecentRequest = {
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
    };
    history?.recordEnd(request, user);
  }

  #attempts(code: RequestCode, outcome: Outcome | undefined): RequestAttempt[] {
    if (this.#chat === undefined) return [];
    const { earlier = [], provider, model } = this.#chat.current;
    const providerError = outcome?.kind === 'failed' ? outcome.providerError : undefined;
    const only = {
      model,
      provider,
      code: (attemptCodes[code] ?? code) as RequestAttempt['code'],
      providerError,
    };
    return (outcome?.attempts ?? [...earlier, only]).map(({ provider, model, code, providerError }) => ({
      provider,
      ...(model !== undefined && { model: model.slice(0, maxModelLength) }),
      code,
      ...(providerError && { providerError }),
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
