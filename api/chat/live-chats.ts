import type { RequestCode } from '../../shared/contracts/ledger.js';
import type { Attempt } from '../../shared/protocol/attempts.js';
import { nextOf, type Outcome } from '../../shared/protocol/outcome.js';
import type { Delta } from '../../shared/protocol/parts.js';
import type { ChatReceiver, Poll } from '../fleet-link/chat-receiver.js';
import { AttachedRequest, type RequestOptions } from './attached-request.js';
import type { ChatCommand, ChatOpening, ClaimedChat } from './chat-command.js';
import { LiveChat } from './live-chat.js';

/** The events of the chats that `POST`s of this process began or joined. Listeners are cheap and never throw. */
export interface ChatListener {
  /** The first `POST` for the chat here. */
  opened?(chat: LiveChat): void;
  /** The chat has been passed on to its next provider. */
  moved?(chat: LiveChat, from: Attempt): void;
  /** The store has lost its job. */
  lost?(chat: LiveChat): void;
  /** A request has left, and its chat goes on: a stored one to its end, another one until its job is cancelled. */
  detached?(chat: LiveChat, code: RequestCode): void;
  /** Without an outcome, all requests have left it for the reason in `leftWith`. */
  ended?(chat: LiveChat, outcome: Outcome | undefined): void;
  /** A request was given the chat of another. */
  joined?(command: ChatCommand, chat: Pick<ClaimedChat, 'id' | 'deadline'>): void;
  /** A request failed before it had a chat. */
  refused?(command: ChatCommand, refusal: Refusal): void;
}

/** Why a request has no chat. */
export interface Refusal {
  readonly code: RequestCode;
  /** When it came, by the clock of `performance.now()`. */
  readonly receivedAt: number;
}

/** Within this time a worker has ended a cancelled job and published its outcome, in milliseconds. */
const cutMs = 1000;
/** A chat in the background is polled once in this many polls. */
const backgroundSlots = 15;

/** The chats that requests of this process wait for or read: the only map of them. */
export class LiveChats implements ChatReceiver {
  readonly #chats = new Map<string, LiveChat>();
  readonly #listeners: ChatListener[] = [];
  readonly #now: () => number;
  #opened = 0;

  /** `now` is the clock of the deadlines, in milliseconds since the epoch: the store's. */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  listen(listener: ChatListener): void {
    this.#listeners.push(listener);
  }

  /**
   * Attaches a request to a chat. With an `opening` it is a `POST`, which may add the chat's job, now and should it be
   * lost, and which follows the chat when its caller leaves. Dispose of the request when it is answered.
   */
  attach(claimed: ClaimedChat, options: RequestOptions, opening?: ChatOpening): AttachedRequest {
    const chat = this.#chats.get(claimed.id) ?? this.#add(claimed);
    const request = new AttachedRequest(chat, options, this.#now());
    chat.requests.add(request);
    if (opening && chat.opening === undefined) {
      chat.opening = opening;
      for (const listener of this.#listeners) listener.opened?.(chat);
    }
    return request;
  }

  /**
   * A request no longer waits for its chat. Unless `goesOn`, it leaves; otherwise it follows the chat in the background
   * if no other does: a stored chat until its deadline, another one for as long as its worker takes to end the job.
   */
  leave(request: AttachedRequest, code: RequestCode, { goesOn }: { goesOn: boolean }): void {
    const { chat } = request;
    if (!chat.requests.has(request)) return;
    const isFollowed = [...chat.requests].some((each) => each.isInBackground);
    if (!goesOn || isFollowed) return void this.#detach(request, code);
    if (!chat.isStored) chat.leftWith = code;
    const forMs = chat.isStored ? chat.claimed.deadline - this.#now() : cutMs;
    request.followInBackground(forMs, (reason) => this.#detach(request, reason));
    if (chat.opening) for (const listener of this.#listeners) listener.detached?.(chat, code);
  }

  refuse(command: ChatCommand, refusal: Refusal): void {
    for (const listener of this.#listeners) listener.refused?.(command, refusal);
  }

  join(command: ChatCommand, chat: ClaimedChat): void {
    for (const listener of this.#listeners) listener.joined?.(command, chat);
  }

  all(): LiveChat[] {
    return [...this.#chats.values()];
  }

  find(id: string): LiveChat | undefined {
    return this.#chats.get(id);
  }

  due({ attachedBefore, slot }: Poll): LiveChat[] {
    const pollSlot = slot % backgroundSlots;
    return this.all().filter(
      (chat) => chat.attachedAt < attachedBefore && (chat.pollSlot === pollSlot || !chat.isInBackground),
    );
  }

  onOutcome(id: string, outcome: Outcome): void {
    const next = nextOf(outcome);
    if (next) this.onMoved(id, next);
    const chat = this.#chats.get(id);
    if (next || chat === undefined) return;
    chat.settled(outcome);
    this.#remove(chat, outcome);
  }

  onMoved(id: string, next: Attempt): void {
    const chat = this.#chats.get(id);
    const from = chat?.attempt;
    if (from === undefined || !chat?.moved(next) || chat.opening === undefined) return;
    for (const listener of this.#listeners) listener.moved?.(chat, from);
  }

  onDelta(delta: Delta): void {
    for (const { reader, readerName } of this.#chats.get(delta.jobId)?.requests ?? [])
      if (readerName === delta.reader) reader?.receive(delta);
  }

  onLost(id: string, askedAt: number): boolean {
    const chat = this.#chats.get(id);
    if (!chat?.claimReAdd(askedAt, this.#now())) return false;
    for (const listener of this.#listeners) listener.lost?.(chat);
    return true;
  }

  #add(claimed: ClaimedChat): LiveChat {
    const place = { attachedAt: this.#now(), pollSlot: this.#opened++ % backgroundSlots };
    const chat = new LiveChat(claimed, place);
    this.#chats.set(chat.id, chat);
    return chat;
  }

  #detach(request: AttachedRequest, code: RequestCode): void {
    const { chat } = request;
    if (!chat.detached(request)) return;
    chat.leftWith ??= code;
    this.#remove(chat, undefined);
  }

  #remove(chat: LiveChat, outcome: Outcome | undefined): void {
    this.#chats.delete(chat.id);
    if (chat.opening) for (const listener of this.#listeners) listener.ended?.(chat, outcome);
  }
}
