import { expect, vi } from 'vitest';
import { quillgate } from '../../support/command-line.js';
import type { ChatCall, ChatReply } from '../../support/deployment.js';
import type { Books } from './books.js';

/** Asks as one user. */
export type Chat = (call?: ChatCall) => Promise<ChatReply>;

/** Makes a user, and gives how this one asks, once the API knows of it. */
export async function newUser(books: Books, name = 'other'): Promise<Chat & { authorization: string }> {
  const { stdout: secret } = await quillgate(['users', 'add', name], books.deployment.stores);
  const Authorization = `Basic ${Buffer.from(`${name}:${secret.trim()}`).toString('base64')}`;
  const chat: Chat = (call = {}) => books.chat({ ...call, headers: { ...call.headers, Authorization } });
  await vi.waitFor(async () => expect((await chat()).status).toBe(200), { timeout: 10_000, interval: 300 });
  return Object.assign(chat, { authorization: Authorization });
}
