import { RateLimiterMemory } from 'rate-limiter-flexible';
import { goodResults, type RequestCode } from '../../shared/contracts/ledger.js';
import { encodeOrigin, type NewEntry } from '../../shared/protocol/entries.js';
import { brokenOutcome, givenUpOutcome, type Outcome } from '../../shared/protocol/outcome.js';
import type { LedgerWriter } from '../../shared/queue/ledger-writer.js';
import type { Log } from '../../shared/runtime/log.js';
import { afterCheck } from '../chat/admission.js';
import { type ChatCommand, originOf } from '../chat/chat-command.js';
import { isCompletion } from '../chat/chat-result.js';
import type { LiveChat } from '../chat/live-chat.js';
import type { ChatListener, Refusal } from '../chat/live-chats.js';
import type { EndAttempt, EndedChats } from './ended-chats.js';

interface ChatRecorderDeps {
  ledger: Pick<LedgerWriter, 'append'>;
  ended: Pick<EndedChats, 'record'>;
  log: Log;
  /** The clock of the deadlines, in milliseconds since the epoch: the store's. */
  now: () => number;
}

/** How a request has left a chat that went on. */
interface Left {
  readonly code: RequestCode;
  readonly at: number;
}

/** Entries a second for refused requests, and for those of one user that were given the chat of another request. */
const maxPerSecond = 20;

/**
 * Records what no worker can say: requests that were refused before the queue, that have left, or whose chat was
 * cancelled or broke without a worker's outcome, and those that were given the chat of another. Counts all ends for the
 * board, and logs failures.
 */
export class ChatRecorder implements ChatListener {
  readonly #deps: ChatRecorderDeps;
  readonly #left = new WeakMap<LiveChat, Left>();
  readonly #rate = new RateLimiterMemory({ points: maxPerSecond, duration: 1 });

  constructor(deps: ChatRecorderDeps) {
    this.#deps = deps;
  }

  detached(chat: LiveChat, code: RequestCode): void {
    this.#left.set(chat, { code, at: this.#deps.now() });
  }

  joined(command: ChatCommand, { id, deadline }: { id: string; deadline: number }): void {
    const origin = encodeOrigin(originOf(command, deadline));
    const endedAt = this.#deps.now();
    const entry: NewEntry = { kind: 'joined', chat: command.requestId, origin, joins: id, endedAt };
    this.#appendSome(command.user, entry);
  }

  ended(chat: LiveChat, outcome: Outcome | undefined): void {
    const { opening, claimed } = chat;
    if (opening === undefined) return;
    const { command } = opening;
    const left = this.#left.get(chat);
    const hasLeft = !chat.isStored && left !== undefined;
    const isOwn = hasLeft || outcome === undefined;
    const code = isOwn ? (chat.leftWith ?? 'timeout') : codeOf(outcome);
    if (isOwn || isStandIn(outcome)) {
      const endedAt = hasLeft ? left.at : this.#deps.now();
      const addedAt = this.#timeOf(opening.receivedAt);
      const origin = encodeOrigin(originOf(command, claimed.deadline));
      void this.#deps.ledger.append({ kind: 'left', chat: chat.id, origin, code, addedAt, endedAt });
    }
    this.#count(command, { code, leftWith: left?.code, attempts: attemptsOf(chat, code, outcome) });
  }

  refused(command: ChatCommand, { code, receivedAt }: Refusal): void {
    const times = { addedAt: this.#timeOf(receivedAt), endedAt: this.#deps.now() };
    const origin = encodeOrigin(originOf(command, times.endedAt));
    this.#appendSome('', { kind: 'left', chat: command.requestId, origin, code, ...times });
    this.#count(command, { code, attempts: [] });
  }

  #appendSome(key: string, entry: NewEntry): void {
    this.#rate.consume(key).then(
      () => this.#deps.ledger.append(entry),
      () => undefined,
    );
  }

  #count(
    command: ChatCommand,
    end: { code: RequestCode; leftWith?: RequestCode | undefined; attempts: EndAttempt[] },
  ) {
    const { requestId, user, asker, provider, model } = command;
    const { code, attempts } = end;
    if (wasAwaited(command, end)) this.#deps.ended.record({ provider, model, code, attempts });
    if (goodResults.some((good) => good === code)) return;
    const checked = attempts.map((attempt) => ({
      ...attempt,
      // A worker may refuse a name that no API process could check.
      model: attempt.code === 'invalid_request' ? undefined : attempt.model,
    }));
    const isChecked = afterCheck.has(code) || checked.some((attempt) => attempt.model === model);
    const names = { requestId, user, userName: asker?.name, provider, ...(isChecked && { model }) };
    this.#deps.log.info({ ...names, attempts: checked, code }, 'chat failed');
  }

  /** The store's time at this one of `performance.now()`. */
  #timeOf(at: number): number {
    return this.#deps.now() - performance.now() + at;
  }
}

/** A deadline ends both the chat and the wait for it; nothing waits for an asynchronous one. */
const wasAwaited = (
  { storeOptions }: ChatCommand,
  { code, leftWith }: { code: RequestCode; leftWith?: RequestCode | undefined },
): boolean =>
  leftWith === undefined
    ? code !== 'cancelled'
    : leftWith === 'timeout' && code === 'timeout' && !storeOptions?.isAsync;

/** Whether no worker has written it. */
const isStandIn = (outcome: Outcome): boolean =>
  outcome.kind === 'cancelled' || outcome === givenUpOutcome || outcome === brokenOutcome;

const codeOf = (outcome: Outcome): RequestCode => (outcome.kind === 'failed' ? outcome.code : outcome.kind);

/** Names of models are chosen by callers and providers. */
const maxModelLength = 200;

function attemptsOf({ claimed }: LiveChat, code: RequestCode, outcome: Outcome | undefined): EndAttempt[] {
  const { earlier = [], provider, model } = claimed.current;
  const providerError = outcome?.kind === 'failed' ? outcome.providerError : undefined;
  const answered = outcome && isCompletion(outcome) ? outcome.model : model;
  const only = { provider, model: answered, providerError, code: attemptCodes[code] ?? code };
  return (outcome?.attempts ?? [...earlier, only]).map(({ provider, model, code, providerError }) => ({
    provider,
    code,
    providerError,
    model: model?.slice(0, maxModelLength),
  }));
}

/** The code of the chat's only attempt, where it differs from the chat's own. */
const attemptCodes: { readonly [Code in RequestCode]?: string } = {
  truncated: 'ok',
  blocked: 'content_blocked',
};
