import type { ProviderId, Target } from '../../shared/contracts/contract.js';
import { jobIdOf } from '../../shared/protocol/attempts.js';
import type { StoredChat } from '../../shared/protocol/stored-chat.js';
import { withTimeout } from '../../shared/runtime/retry.js';
import type { JobResult } from '../fleet-link/chat-receiver.js';
import type { FleetLink } from '../fleet-link/fleet-link.js';
import { admit, backlogMs, type Deadlines, resolveDeadlines, type TimeLimits } from './admission.js';
import { type AttachedRequest, outcomeFor } from './attached-request.js';
import {
  type Attachment,
  type ChatCommand,
  type ChatReply,
  clockMarginMs,
  failureCodeOf,
  isStored,
  jobOwnerOf,
  type ResolvedChat,
  type StreamOptions,
  throwIfLeft,
  toNewJob,
} from './chat-command.js';
import { statusOf, toCompletion, withWait } from './chat-result.js';
import { type NewChat, toClaimedChat } from './idempotent-entry.js';
import type { LiveChat } from './live-chat.js';
import type { LiveChats } from './live-chats.js';
import { ReplyStream } from './reply-stream.js';
import type { StoredChats } from './stored-chats.js';
import { hasUploads, type Uploads } from './uploads.js';
import type { Place, UserShares } from './user-shares.js';

type Jobs = 'assertConnected' | 'add' | 'read' | 'cancel' | 'cancelUnconfirmed' | 'requestResend';

interface ChatServiceDeps extends TimeLimits {
  link: Pick<FleetLink, Jobs | 'pools' | 'check'>;
  chats: LiveChats;
  shares: UserShares;
  storedChats: Pick<StoredChats, 'find' | 'open' | 'cancelUnconfirmed'>;
  uploads?: Pick<Uploads, 'store' | 'removeTexts'>;
  /** The fallback for commands that name none; absent means no fallback. */
  defaultFallback?: (provider: ProviderId) => readonly Target[];
  /** The clock of the deadlines, in milliseconds since the epoch: the store's. */
  now: () => number;
}

type OpenedChat = ResolvedChat & { readonly deadlines: Deadlines };

/** Short: the caller's deadline has passed, and a healthy store answers in a few milliseconds. */
const finalReadMs = 25;

/** Runs chats: adds a job for each one and waits for its reply. */
export class ChatService {
  readonly #deps: ChatServiceDeps;

  constructor(deps: ChatServiceDeps) {
    this.#deps = deps;
    deps.chats.listen({
      lost: (chat) => void this.#addJob(chat).catch(() => undefined),
      // Other processes may know a stored chat: its worker, or its cancellation, removes them.
      ended: (chat) => chat.isStored || deps.uploads?.removeTexts(chat),
    });
  }

  /** The command's reply, at the latest when the caller stops waiting. Throws a `Failure` for everything expected. */
  async createChat(command: ChatCommand): Promise<ChatReply> {
    using place = this.#deps.shares.enter(command.user);
    await this.#deps.shares.consume(command.user);
    const receivedAt = performance.now() - (command.elapsedMs ?? 0);
    const opened = await this.#open(command, place).catch((error) => {
      this.#deps.chats.refuse(command, { code: failureCodeOf(command, error), receivedAt });
      throw error;
    });
    if (opened.result?.state === 'settled') return replay(command, opened.result);
    using request = this.#attach(command, { ...opened, receivedAt });
    this.#add(request, command);
    const { waitUntil } = opened.deadlines;
    const times = {
      waitedMs: waitUntil - this.#deps.now() + performance.now() - receivedAt,
      maxMs: this.#deps.maxMs,
    };
    const result = await this.#awaitResult(command, request);
    return this.#answer(command, request, result).catch((error) => {
      throw withWait(error, times);
    });
  }

  /**
   * The reply of a stored chat that was read with this result; the sink gets it as it is written. Leaves the chat alone
   * when the signal aborts. Throws the failure that it ends with, and `timeout` at its deadline.
   */
  async follow(
    chat: StoredChat,
    result: JobResult,
    follower: StreamOptions & Attachment,
  ): Promise<ChatReply> {
    const { signal, confirmAccess, ...stream } = follower;
    const { provider, ownerId } = chat;
    using place = this.#deps.shares.enter(ownerId);
    if (result.state === 'settled') return replay({ provider, stream, signal }, result);
    this.#deps.link.assertConnected();
    place.joinStream();
    const waitUntil = chat.deadline + clockMarginMs;
    const options = { signal, stream, waitUntil, joined: result, link: this.#deps.link };
    using request = this.#deps.chats.attach(toClaimedChat(chat), options);
    try {
      const outcome = await outcomeFor({ signal, confirmAccess, provider }, request);
      if (outcome === undefined) throwIfLeft({ signal, provider });
      return await complete(outcome ? { state: 'settled', outcome } : result, provider, request.reader);
    } finally {
      this.#deps.chats.leave(request, 'cancelled', { goesOn: false });
    }
  }

  /** The chat that the command's key stands for, or a new one once it was admitted. */
  async #open(command: ChatCommand, place: Place): Promise<OpenedChat> {
    this.#deps.link.assertConnected();
    const deadlines = resolveDeadlines(command, this.#deps, this.#deps.now());
    const { deadline } = deadlines;
    const { storedChats } = this.#deps;
    const { joined, previousId } = isStored(command) ? await storedChats.find(command, deadline) : {};
    const resolved = joined ?? (await this.#openNew(command, { ...deadlines, previousId }));
    const isReplayed = resolved.result?.state === 'settled';
    command.storeOptions?.onResolved(resolved.chat.id, { isReplayed });
    if (resolved.chat.id !== command.requestId) this.#deps.chats.join(command, resolved.chat);
    if (command.stream && resolved.result && !isReplayed)
      await this.#deps.shares.consumeJoin(command.user).then(place.joinStream);
    return { ...resolved, deadlines };
  }

  async #openNew(
    command: ChatCommand,
    { startBy, deadline, previousId }: Deadlines & Pick<NewChat, 'previousId'>,
  ): Promise<ResolvedChat> {
    const { link, shares, now, defaultFallback, timeoutMs } = this.#deps;
    const fallback = command.fallback ?? defaultFallback?.(command.provider);
    const withinMs = backlogMs(command, { startBy, now: now(), timeoutMs });
    const current = await admit(command, { link, shares, fallback, timeoutMs: withinMs });
    if (isStored(command)) return this.#deps.storedChats.open(command, { deadline, current, previousId });
    throwIfLeft(command);
    return { chat: { id: command.requestId, deadline, current } };
  }

  #attach(
    command: ChatCommand,
    { chat, result, deadlines, receivedAt }: OpenedChat & { receivedAt: number },
  ): AttachedRequest {
    const { startBy } = deadlines;
    const { signal, stream } = command;
    const owner = jobOwnerOf(command, chat.current.provider);
    const level = this.#deps.shares.nextLevel(owner, command.jobClass);
    // A joined chat ends at its own deadline, which another process's clock has set.
    const waitUntil = Math.min(deadlines.waitUntil, chat.deadline + clockMarginMs);
    const options = { signal, stream, waitUntil, startBy, joined: result, link: this.#deps.link };
    return this.#deps.chats.attach(chat, options, { command, level, startBy, receivedAt });
  }

  /** Starts adding the chat's job. Adding is idempotent: a joining request adds it too, in case the store lost it. */
  #add(request: AttachedRequest, command: ChatCommand): void {
    const { chat } = request;
    request.added = this.#addJob(chat, command);
    request.added.then(
      () => chat.added(this.#deps.now()),
      (error) => {
        this.#cancelUnconfirmed(chat);
        request.fail(error);
      },
    );
  }

  async #addJob(chat: LiveChat, command?: ChatCommand): Promise<void> {
    if (chat.opening === undefined) return;
    const job = toNewJob(chat.opening, chat.claimed, chat.attempt);
    if (command && hasUploads(command))
      chat.storing = this.#deps.uploads?.store(command, { ...job, chatId: chat.id, earlier: chat.storing });
    if (chat.storing) await chat.storing;
    await this.#deps.link.add(jobIdOf(chat.id, job.attempt), job);
  }

  /** The store may still take the job although nothing waits for it; with a key, a repeated request may join it. */
  #cancelUnconfirmed({ id, claimed, job, opening }: LiveChat): void {
    // After its deadline no worker makes a call for it.
    if (this.#deps.now() >= claimed.deadline) return;
    const store = opening?.command.storeOptions;
    if (store === undefined) this.#deps.link.cancelUnconfirmed(job);
    else if (store.key === undefined) this.#deps.storedChats.cancelUnconfirmed({ owner: store.owner, id });
  }

  /** The chat's state when its reply is there, or when the caller stops waiting. */
  async #awaitResult(command: ChatCommand, request: AttachedRequest): Promise<JobResult> {
    const { chats } = this.#deps;
    try {
      const outcome = await outcomeFor(command, request);
      if (outcome) return { state: 'settled', outcome };
      this.#cancelUnlessStored(command, request);
      throwIfLeft(command);
      // A chat is accepted once the queue has its job.
      if (command.storeOptions?.isAsync) await request.added;
      // No message has brought an outcome in time: the records may have it, if they can be read at once.
      const reading = withTimeout(finalReadMs, this.#deps.link.read(request.chat.job));
      const result = await reading.catch((): JobResult => ({ state: 'unknown' }));
      if (result.state === 'settled') chats.onOutcome(request.chat.id, result.outcome);
      else chats.leave(request, 'timeout', { goesOn: true });
      return result;
    } catch (error) {
      const hasFailed = request.reader?.hasFailed ?? false;
      if (hasFailed && !isStored(command)) this.#deps.link.cancel(request.chat.job);
      chats.leave(request, failureCodeOf(command, error), { goesOn: command.signal.aborted || hasFailed });
      throw error;
    }
  }

  /**
   * For a request that has gone, and for a stream that has not begun in time, which may have minutes to its deadline. A
   * job that is cancelled before it is there would be added after that.
   */
  #cancelUnlessStored(command: ChatCommand, { added, chat, reader }: AttachedRequest): void {
    if (isStored(command) || !(command.signal.aborted || reader?.hasBegun === false)) return;
    added.then(
      () => this.#deps.link.cancel(chat.job),
      () => undefined,
    );
  }

  #answer(command: ChatCommand, { chat, reader }: AttachedRequest, result: JobResult): Promise<ChatReply> {
    const { storeOptions, waitMs, provider } = command;
    const { deadline } = chat.claimed;
    const isInTime = result.state === 'settled' && waitMs !== undefined;
    if (!storeOptions?.isAsync || isInTime) return complete(result, provider, reader);
    const status = statusOf(result, { deadline, now: this.#deps.now() });
    return Promise.resolve({ kind: 'accepted', id: chat.id, status });
  }
}

/** The end of a chat that had ended before its request came. */
const replay = (
  { provider, stream, signal }: Pick<ChatCommand, 'provider' | 'stream' | 'signal'>,
  result: JobResult,
): Promise<ChatReply> => complete(result, provider, stream && new ReplyStream({ ...stream, signal }));

/** The reply, once its reader has all of it; throws as `toCompletion`. */
async function complete(result: JobResult, provider: ProviderId, reader?: ReplyStream): Promise<ChatReply> {
  const completion = toCompletion(result, provider);
  await reader?.finish(completion);
  return { kind: 'completed', completion };
}
