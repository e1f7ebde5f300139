import type { UserIdentity } from '../../db/access/users.js';
import type { ChatStatus, ProviderId, Turn } from '../../shared/contract.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import type { StoredChat } from '../../shared/protocol/stored-chat.js';
import type { Completion } from './chat-result.js';
import type { PendingJob } from './jobs/pending-replies.js';
import type { JobOwner } from './pools/outstanding-jobs.js';

/** A conversation for a provider. */
export interface ChatCommand {
  /** Becomes the job's id, unless another chat is joined. */
  requestId: string;
  /** Id of the user who asks. */
  user: string;
  provider: ProviderId;
  /** The provider's own model name; absent means the provider's configured one. */
  model: string | undefined;
  turns: Turn[];
  /** How long the caller waits, in milliseconds; absent means the configured time. */
  waitMs?: number | undefined;
  /** How long the request has taken so far, in milliseconds: it counts against the deadline. Absent means no time. */
  elapsedMs?: number;
  /** Aborts when the caller has gone: then the job is called off, wherever it is, unless the chat is kept. */
  gone: AbortSignal;
  /** There when the caller may come back; with `isAsync` it is answered before the reply is there. */
  storeOptions?: StoreOptions | undefined;
}

/** What a caller who may come back has said of that. */
interface StoreOptions {
  readonly owner: UserIdentity;
  /** The `Idempotency-Key`. */
  readonly key: string | undefined;
  readonly isAsync: boolean;
  /** Called with the id of the command's chat as soon as it is known, before anything becomes of it. */
  readonly onResolved: (chatId: string) => void;
  /** Called when the command's chat goes on without its request, with what resolves when that counts no longer. */
  readonly onDetached: (ended: Promise<unknown>) => void;
}

/** A command whose caller may come back. */
export type StoredChatCommand = ChatCommand & { readonly storeOptions: StoreOptions };

/** Whose job the command makes. */
export const jobOwnerOf = ({ provider, user, storeOptions }: ChatCommand): JobOwner => ({
  provider,
  user,
  isAsync: storeOptions?.isAsync ?? false,
});

export const isStored = (command: ChatCommand): command is StoredChatCommand =>
  command.storeOptions !== undefined;

/** The chat of a command: begun by it, joined while it is under way, or ended already. */
export interface ResolvedChat {
  readonly chat: Pick<StoredChat, 'id' | 'deadline'> & Partial<StoredChat>;
  readonly isNew: boolean;
  /** There when it had ended before the command came. */
  readonly outcome?: Outcome;
}

/** The chat of a command, and until when its caller waits for it, in milliseconds since the epoch. */
export type Attempt = ResolvedChat & { readonly waitUntil: number };

/** A task whose job is being added, by what can add it again. */
export interface RunningAttempt extends Attempt {
  readonly job: PendingJob;
  readonly add: () => Promise<void>;
  readonly adding: Promise<void>;
}

/** The reply, or that a stored chat was accepted and is under way. */
export type Reply =
  | { readonly kind: 'answered'; readonly answer: Completion; readonly isReplayed: boolean }
  | { readonly kind: 'accepted'; readonly id: string; readonly status: ChatStatus };
