import type { AttachedRequest, RequestOptions } from '../../api/chat/attached-request.js';
import type { ChatCommand, ClaimedChat } from '../../api/chat/chat-command.js';
import type { LiveChats } from '../../api/chat/live-chats.js';
import { writeChat } from '../../shared/json/json-worker.js';
import { type ChatContent, toWritten, type WrittenContent } from '../../shared/protocol/chat-content.js';

/** Writes a chat in this thread. */
export const writeContent = (content: ChatContent): WrittenContent => toWritten(content, writeChat(content));

/** A request that can only leave by the test's doing. */
export const command = (own: Partial<ChatCommand> = {}): ChatCommand => ({
  ...{ requestId: 'chat', user: 'me', provider: 'openai', model: 'm', bytes: 0 },
  ...{ written: writeContent({ turns: [] }), unfitFor: [] },
  signal: new AbortController().signal,
  ...own,
});

interface AttachOptions extends Partial<Omit<RequestOptions, 'waitUntil'>> {
  /** Of the claimed chat; stored unless `expiresAt` is undefined. */
  chat?: Partial<ClaimedChat>;
  /** How long the request waits, in milliseconds. */
  forMs?: number;
  command?: Partial<ChatCommand>;
  level?: number;
}

/** Attaches a `POST` for the chat of this id, at openai unless the options say otherwise. */
export function attach(
  chats: LiveChats,
  id: string,
  { chat = {}, forMs = 60_000, command: own, level = 0, ...options }: AttachOptions = {},
): AttachedRequest {
  const deadline = Date.now() + forMs;
  const asked = command({ requestId: id, ...own });
  const claimed = { id, deadline, current: { provider: asked.provider }, ...chat };
  return chats.attach(
    claimed,
    {
      ...{ signal: asked.signal, waitUntil: deadline, stream: asked.stream },
      link: { requestResend: () => undefined },
      ...options,
    },
    { command: asked, level, startBy: deadline, receivedAt: performance.now() },
  );
}

/** Has the request leave its chat as at its deadline, and nothing follow the chat in its place. */
export const leave = (chats: LiveChats, request: AttachedRequest): void =>
  chats.leave(request, 'timeout', { goesOn: false });
