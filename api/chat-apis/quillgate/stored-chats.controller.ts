import {
  Controller,
  Delete,
  Get,
  Header,
  Middlewares,
  Path,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import type { Response as HttpResponse } from 'express';
import { auditCancel } from '../../../db/access/users.js';
import { readCost } from '../../../db/ledger/read.js';
import type { UserInfo } from '../../../shared/contracts/accounts.js';
import type { Chat, Problem } from '../../../shared/contracts/contract.js';
import { Failure } from '../../../shared/failures.js';
import { givenFields } from '../../../shared/json/json.js';
import { textOfTape } from '../../../shared/protocol/parts.js';
import { withTimeout } from '../../../shared/runtime/retry.js';
import { invalid } from '../../../shared/validation.js';
import type { AuthenticatedRequest } from '../../access/caller.js';
import { operatorsBase } from '../../access/operators.js';
import { answeredBy, isCompletion, outcomeToFailure } from '../../chat/chat-result.js';
import type { ChatService } from '../../chat/chat-service.js';
import { changesHeader } from '../../chat/conversation-changes.js';
import type { StoredChats } from '../../chat/stored-chats.js';
import type { UserShares } from '../../chat/user-shares.js';
import { toProblem } from '../../http/problem.js';
import { checkUuidParam } from '../../http/query.js';
import { toStoredCompletion } from '../openai-chat/completion.js';
import { attachmentOf } from '../request-options.js';
import { sendStream } from '../serve.js';
import { acceptsEventStream, EventStream, readLastEventId } from './event-stream.js';

export interface StoredChatsControllerDeps {
  storedChats: Pick<StoredChats, 'read' | 'cancel' | 'cancelAny'>;
  chatService: Pick<ChatService, 'follow'>;
  /** For the audit, with the users that have no row in it. */
  database: Parameters<typeof auditCancel>[0];
  environmentUsers: readonly UserInfo[];
  shares: Pick<UserShares, 'admitReader'>;
}

@Route('chat')
@Response<Problem>('404', 'No such chat of yours, or no longer')
export class StoredChatsController extends Controller {
  constructor(private readonly deps: StoredChatsControllerDeps) {
    super();
  }

  /**
   * For the user who began it with an `Idempotency-Key` or `Prefer: respond-async`, until `CHAT_RESULT_TTL_S` after its
   * deadline. `expired` is one whose deadline passed before there was a reply. With `Accept: text/event-stream` its
   * reply is a stream, as that of `POST /chat`: from the beginning, or behind the event that `Last-Event-ID` names. A
   * chat completion with tools, images or a format has no such stream.
   *
   * @summary Get a stored chat
   * @param id Id of the chat, as `Content-Location` and the `X-Request-Id` of the request that began it have it.
   * @param lastEventId The id of the last event of its stream that arrived.
   */
  @Get('{id}')
  @Security('basic')
  @Middlewares(checkUuidParam)
  @SuccessResponse<{
    'X-Request-Id': string;
    'X-LLM-Provider': string;
    /** The same header as that of `POST /chat`, once the reply is there. */
    'X-Conversation-Changes': string;
    'X-Accel-Buffering': string;
  }>('200', 'The chat', ['application/json', 'text/event-stream'])
  async getChat(
    @Request() request: AuthenticatedRequest,
    @Path() id: string,
    @Header('Last-Event-ID') lastEventId?: string,
  ): Promise<Chat> {
    const { storedChats, chatService, shares } = this.deps;
    const name = { owner: request.user, id: id.toLowerCase() };
    const isStream = acceptsEventStream(request);
    if (isStream) await shares.admitReader(name.owner.id);
    const stored = await storedChats.read(name);
    const { chat, result } = stored;
    if (!isStream) return { ...this.#represent(stored), ...(await this.#costOf(stored)) };
    if (chat.parts) throw invalid('Accept', 'must be JSON for this chat');
    const response = request.res as HttpResponse;
    const sink = new EventStream(response, chat);
    const reader = { sink, from: readLastEventId(lastEventId), ...attachmentOf(request) };
    await sendStream(response, sink, chatService.follow(chat, result, reader));
    // Not sent: the response has ended.
    return this.#represent(stored);
  }

  /**
   * Ends the chat wherever it is, in the queue or at the provider; does nothing to one that has ended. Below `/admin`
   * that is the chat of any user, also one that is not stored, and the audit has it.
   *
   * @summary Cancel a stored chat
   * @param id Id of the chat.
   */
  @Delete('{id}')
  @Security('basic')
  @Middlewares(checkUuidParam)
  @SuccessResponse<{ 'X-Request-Id': string }>('204', 'Cancelled, or it had ended')
  async cancelChat(@Request() request: AuthenticatedRequest, @Path() id: string): Promise<void> {
    const { storedChats, database, environmentUsers } = this.deps;
    const chat = { owner: request.user, id: id.toLowerCase() };
    if (request.baseUrl !== operatorsBase) return storedChats.cancel(chat);
    await storedChats.cancelAny(chat.id, (user) => {
      const userName = environmentUsers.find((each) => each.id === user)?.name;
      return auditCancel(database, { actor: chat.owner.name, id: chat.id, user, userName });
    });
  }

  async #costOf({ chat, result }: Awaited<ReturnType<StoredChats['read']>>): Promise<Pick<Chat, 'cost'>> {
    if (result.state !== 'settled') return {};
    // The reply does not wait for the ledger.
    const reading = withTimeout(costMs, readCost(this.deps.database, chat.id));
    return givenFields({ cost: await reading.catch(() => undefined) });
  }

  #represent({ chat, result, status }: Awaited<ReturnType<StoredChats['read']>>): Chat {
    const { id, provider, model, createdAt } = chat;
    const begun = { id, status, provider, ...givenFields({ model }), createdAt: toTime(createdAt) };
    // With the id of the request that failed, which is the one that began the chat.
    const failed = (failure: Failure) => ({ error: toProblem(failure, id) });
    if (status === 'expired') return { ...begun, ...failed(new Failure('timeout', { provider })) };
    if (result.state !== 'settled') return begun;
    const { outcome, settledAt } = result;
    const completedAt = settledAt === undefined ? undefined : toTime(settledAt);
    const ended = { ...begun, ...givenFields({ completedAt }) };
    if (isCompletion(outcome)) {
      const changes = changesHeader(chat.changes, outcome.changes);
      for (const [name, value] of Object.entries(changes)) this.setHeader(name, value);
      return {
        ...ended,
        provider: answeredBy(outcome, provider),
        model: outcome.model,
        response: textOfTape(outcome),
        ...(chat.parts && { completion: toStoredCompletion(chat, outcome) }),
      };
    }
    if (outcome.kind === 'cancelled') return ended;
    return { ...ended, ...failed(outcomeToFailure(outcome, provider)) };
  }
}

/** A healthy database answers in a few milliseconds. */
const costMs = 250;

const toTime = (ms: number): string => new Date(ms).toISOString();
