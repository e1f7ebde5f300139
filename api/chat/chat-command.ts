import type { UserIdentity } from '../../db/access/users.js';
import type { ChatStatus, ProviderId, Turn } from '../../shared/contract.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import type { KeptChat } from '../../shared/protocol/stored-chat.js';
import type { Answer } from './chat-result.js';
import type { AwaitedJob } from './jobs/pending-replies.js';
import type { JobOwner } from './pools/outstanding-jobs.js';

/** A conversation for a provider. */
export interface Question {
  /** Becomes the job's id, unless another chat is joined. */
  requestId: string;
  /** Id of the user who asks. */
  user: string;
  provider: ProviderId;
  /** The provider's own model name; absent means the provider's configured one. */
  model: string | undefined;
  turns: Turn[];
  /** How long the caller waits, in milliseconds; absent means the configured time. */
  patienceMs?: number | undefined;
  /** How long the request has taken so far, in milliseconds: it counts against the deadline. Absent means no time. */
  elapsedMs?: number;
  /** Aborts when the caller has gone: then the job is called off, wherever it is, unless the chat is kept. */
  gone: AbortSignal;
  /** There when the caller may come back; with `isAsync` it is answered before the reply is there. */
  keeping?: Keeping | undefined;
}

/** What a caller who may come back has said of that. */
interface Keeping {
  readonly owner: UserIdentity;
  /** The `Idempotency-Key`. */
  readonly key: string | undefined;
  readonly isAsync: boolean;
  /** Called with the id of the question's chat as soon as it is known, before anything becomes of it. */
  readonly onOpened: (chatId: string) => void;
  /** Called when the question's chat goes on without its request, with what resolves when that counts no longer. */
  readonly onGoingOn: (ended: Promise<unknown>) => void;
}

/** A question whose caller may come back. */
export type KeptQuestion = Question & { readonly keeping: Keeping };

/** Whose job the question makes. */
export const ownerOf = ({ provider, user, keeping }: Question): JobOwner => ({
  provider,
  user,
  isAsync: keeping?.isAsync ?? false,
});

export const isKept = (question: Question): question is KeptQuestion => question.keeping !== undefined;

/** The chat of a question: begun by it, joined while it is under way, or ended already. */
export interface OpenedChat {
  readonly chat: Pick<KeptChat, 'id' | 'deadline'> & Partial<KeptChat>;
  readonly isNew: boolean;
  /** There when it had ended before the question came. */
  readonly outcome?: Outcome;
}

/** The chat of a question, and until when its caller waits for it, in milliseconds since the epoch. */
export type Task = OpenedChat & { readonly heldUntil: number };

/** A task whose job is being added, by what can add it again. */
export interface TaskUnderWay extends Task {
  readonly job: AwaitedJob;
  readonly add: () => Promise<void>;
  readonly adding: Promise<void>;
}

/** The reply, or that a kept chat was accepted and is under way. */
export type Reply =
  | { readonly kind: 'answered'; readonly answer: Answer; readonly isReplayed: boolean }
  | { readonly kind: 'accepted'; readonly id: string; readonly status: ChatStatus };
