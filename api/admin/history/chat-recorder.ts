import type { RecentRequest, RequestAttempt, RequestCode } from '../../../shared/contracts/history.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import type { ChatCommand } from '../../chat/chat-command.js';
import { isCompletion } from '../../chat/chat-result.js';
import type { LiveChat } from '../../chat/live-chat.js';
import type { ChatListener, Refusal } from '../../chat/live-chats.js';
import type { EndedChats } from './ended-chats.js';
import type { History } from './history.js';

/** Times are in milliseconds from its arrival here. */
interface Followed {
  /** How long after its arrival the chat was queued; undefined where the request was refused. */
  queuedMs?: number;
  /** When the request of a chat that is not stored has left it. */
  leftMs?: number;
  /** Why a request has left it, while it goes on. */
  leftWith?: RequestCode;
}

/** How a chat ended, as far as this process knows. */
interface End extends Followed {
  readonly code: RequestCode;
  readonly outcome?: Outcome | undefined;
  /** When its request came, by the clock of `performance.now()`. */
  readonly receivedAt: number;
  readonly endedMs: number;
  /** The chat; undefined where the request was refused. */
  readonly chat?: LiveChat;
}

/** Names of models are chosen by callers and providers. */
const maxModelLength = 200;

/**
 * Records for operators that a chat of this process came, and how it ended: both once, however many requests join it. A
 * request that is refused is recorded as well; one whose chat had ended before is not.
 */
export class ChatRecorder implements ChatListener {
  readonly #history: Pick<History, 'recordArrival' | 'recordEnd'>;
  readonly #followed = new WeakMap<LiveChat, Followed>();
  readonly #ended: Pick<EndedChats, 'record'>;

  constructor(history: Pick<History, 'recordArrival' | 'recordEnd'>, ended: Pick<EndedChats, 'record'>) {
    this.#history = history;
    this.#ended = ended;
  }

  opened(chat: LiveChat): void {
    if (chat.opening === undefined) return;
    const { command, receivedAt } = chat.opening;
    this.#followed.set(chat, { queuedMs: performance.now() - receivedAt });
    this.#history.recordArrival(command.provider);
  }

  detached(chat: LiveChat, code: RequestCode): void {
    const followed = this.#followed.get(chat);
    if (followed === undefined || chat.opening === undefined) return;
    followed.leftWith = code;
    if (!chat.isStored) followed.leftMs = performance.now() - chat.opening.receivedAt;
  }

  /** Records the end of a chat. If its request has left, the times are those that the worker measured. */
  ended(chat: LiveChat, outcome: Outcome | undefined): void {
    const followed = this.#followed.get(chat);
    if (followed === undefined || chat.opening === undefined) return;
    const { command, receivedAt } = chat.opening;
    const endedMs = followed.leftMs ?? performance.now() - receivedAt;
    const isLeft = followed.leftMs !== undefined || outcome === undefined;
    const code = isLeft ? (chat.leftWith ?? 'timeout') : codeOf(outcome);
    this.#record(command, { ...followed, chat, outcome, code, receivedAt, endedMs });
  }

  refused(command: ChatCommand, { code, receivedAt }: Refusal): void {
    this.#history.recordArrival(command.provider);
    this.#record(command, { code, receivedAt, endedMs: performance.now() - receivedAt });
  }

  #record(command: ChatCommand, end: End): void {
    const { chat, code, outcome, receivedAt, queuedMs, endedMs } = end;
    const { requestId, user, userName = user, provider, stream } = command;
    const model = outcome && isCompletion(outcome) ? outcome.model : command.model;
    const request: RecentRequest = {
      id: chat?.id ?? requestId,
      user: userName,
      provider,
      model: model?.slice(0, maxModelLength),
      streamed: stream !== undefined,
      receivedAt: new Date(Date.now() - performance.now() + receivedAt).toISOString(),
      ...timesOf(outcome, queuedMs, endedMs),
      endedMs: Math.round(endedMs),
      code,
      attempts: chat ? attemptsOf(chat, code, outcome) : [],
      ...(outcome && tokensOf(outcome)),
    };
    this.#history.recordEnd(request, user);
    if (wasAwaited(command, end)) this.#ended.record(request);
  }
}

/** A deadline ends both the chat and the wait for it; nothing waits for an asynchronous one. */
const wasAwaited = ({ storeOptions }: ChatCommand, { code, leftWith }: End): boolean =>
  leftWith === undefined
    ? code !== 'cancelled'
    : leftWith === 'timeout' && code === 'timeout' && !storeOptions?.isAsync;

const codeOf = (outcome: Outcome): RequestCode => (outcome.kind === 'failed' ? outcome.code : outcome.kind);

function attemptsOf(
  { claimed }: LiveChat,
  code: RequestCode,
  outcome: Outcome | undefined,
): RequestAttempt[] {
  const { earlier = [], provider, model } = claimed.current;
  const providerError = outcome?.kind === 'failed' ? outcome.providerError : undefined;
  const only = {
    model,
    provider,
    providerError,
    code: (attemptCodes[code] ?? code) as RequestAttempt['code'],
  };
  return (outcome?.attempts ?? [...earlier, only]).map(({ provider, model, code, providerError }) => ({
    provider,
    code,
    providerError,
    model: model?.slice(0, maxModelLength),
  }));
}

/** The code of the chat's only attempt, where it differs from the chat's own. */
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
    firstTokenMs:
      firstTokenMs === undefined
        ? undefined
        : between(queuedMs + queueMs + earlierMs + firstTokenMs, startedMs),
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
