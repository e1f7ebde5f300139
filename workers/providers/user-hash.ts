import { createHmac } from 'node:crypto';

/**
 * The name of a user for a provider, 32 characters of base64url: the same for the same user and key, and nothing that
 * could be found out without the key. Anthropic binds what its newer models think to it, so another key loses that once.
 * https://platform.claude.com/docs/en/api/messages#metadata
 */
export const hashUser = (key: string, id: string): string =>
  createHmac('sha256', key).update(id).digest('base64url').slice(0, 32);
