import { addUser } from '../../support/accounts.js';
import type { ChatCall, ChatReply } from '../../support/deployment.js';
import type { Books } from './books.js';

/** Asks as one user. */
export type Chat = (call?: ChatCall) => Promise<ChatReply>;

/** Makes a user, and gives how this one asks, once the API knows of it. */
export async function newUser(books: Books, name = 'other'): Promise<Chat & { authorization: string }> {
  const authorization = await addUser(books.deployment, name);
  const chat: Chat = (call = {}) =>
    books.chat({ ...call, headers: { ...call.headers, Authorization: authorization } });
  return Object.assign(chat, { authorization });
}
