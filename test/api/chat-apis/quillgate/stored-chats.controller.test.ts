import type { Request } from 'express';
import { describe, expect, it, vi } from 'vitest';
import type { Completion } from '../../../../api/chat/chat-result.js';
import { StoredChatsController } from '../../../../api/chat-apis/quillgate/stored-chats.controller.js';
import { Failure } from '../../../../shared/failures.js';
import type { StoredChat } from '../../../../shared/protocol/stored-chat.js';
import { userNamed } from '../../../support/identities.js';
import { isCompletionOfOpenAi } from '../../../support/openai-schemas.js';

const user = userNamed('user');
const chat: StoredChat = {
  ...{ v: 1, id: 'the-id', owner: user.name, ownerId: user.id, provider: 'vertexai', model: 'm' },
  ...{
    requestHash: '',
    createdAt: 1_700_000_000_999,
    deadline: 1_700_000_060_000,
    keptUntil: 1_700_003_660_000,
  },
};
const outcome = {
  ...({ kind: 'ok', text: 'Look:{"x":1}', model: 'm-2026', queueMs: 0, providerMs: 0 } as const),
  marks: [{ kind: 'call' as const, id: 'a', name: 'weather', at: 5 }],
};

/** Thrown when a reader of a stream is to be admitted. */
let refusal: Failure | undefined;
const read = vi.fn();

function getChat(
  stored: StoredChat,
  { accept = 'application/json', ...reply }: Completion & { accept?: string } = outcome,
) {
  const result = { state: 'settled', outcome: reply } as const;
  const controller = new StoredChatsController({
    storedChats: {
      read: read.mockResolvedValue({ chat: stored, result, status: 'completed' }),
      cancel: async () => {},
      cancelAny: async () => {},
    },
    chatService: { follow: () => Promise.reject(new Error('followed')) },
    database: { run: () => Promise.reject(new Error('asked')) },
    environmentUsers: [],
    shares: { admitReader: () => (refusal ? Promise.reject(refusal) : Promise.resolve()) },
  });
  const get = () => accept;
  const request = { user, method: 'GET', get, accepts: () => accept } as unknown as Request;
  return controller.getChat(request as Parameters<typeof controller.getChat>[0], 'the-id');
}

it('a user who comes to too many streams asks for another -> nothing of the chat is read but its state', async () => {
  read.mockClear();
  refusal = new Failure('rate_limited');
  await expect(getChat(chat, { ...outcome, accept: 'text/event-stream' })).rejects.toBe(refusal);
  expect(read).not.toHaveBeenCalled();
  expect(await getChat(chat)).toMatchObject({ status: 'completed' });
  refusal = undefined;
});

it('an ended chat whose cost cannot be read -> is answered without it', async () => {
  expect(await getChat(chat)).not.toHaveProperty('cost');
});

describe('a stored chat with parts', () => {
  const withParts: StoredChat = { ...chat, parts: true };

  it('has its text, and the completion that its address would have sent', async () => {
    const { response, completion } = await getChat(withParts);
    expect(response).toBe('Look:');
    expect(isCompletionOfOpenAi(completion)).toBe(true);
    expect(completion).toMatchObject({
      ...{ id: 'chatcmpl-the-id', created: 1_700_000_000, model: 'vertexai/m' },
      choices: [
        {
          message: {
            content: 'Look:',
            tool_calls: [{ id: 'a', function: { name: 'weather', arguments: '{"x":1}' } }],
          },
          finish_reason: 'tool_calls',
        },
      ],
    });
  });

  it('is not read as a stream of text', async () => {
    await expect(getChat(withParts, { ...outcome, accept: 'text/event-stream' })).rejects.toMatchObject({
      ...{ code: 'invalid_request', facts: { errors: [{ pointer: 'Accept' }] } },
    });
  });
});

describe('a stored chat of text', () => {
  it('has no completion', async () => {
    const { marks: _, ...said } = outcome;
    expect(await getChat(chat, said)).not.toHaveProperty('completion');
  });
});
