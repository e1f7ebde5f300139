import { afterAll, describe, expect, it } from 'vitest';
import { checkConversation } from '../../../../api/chat-apis/quillgate/chat-request.js';
import { providerIds } from '../../../../shared/contracts/contract.js';
import { startApp } from '../../../support/app.js';
import { growthOfVisits } from '../../../support/visits.js';

const app = await startApp({ variables: { MAX_MESSAGES: '8000' } });
afterAll(app.close);

const send = async (body: unknown, headers: Record<string, string> = {}) =>
  (await app.chat({ body, headers })).body;

const unlisted = 'must be one of: system, user, assistant';

describe('checkConversation', () => {
  it.each<[string, unknown, { pointer: string; detail: string }[]]>([
    ['no object', [], [{ pointer: '', detail: 'must be an object' }]],
    ['null', null, [{ pointer: '', detail: 'must be an object' }]],
    ['no messages', {}, [{ pointer: '/messages', detail: 'is required' }]],
    ['messages that are no array', { messages: {} }, [{ pointer: '/messages', detail: 'must be an array' }]],
    [
      'a message that is no object',
      { messages: [{}, 'x'] },
      [{ pointer: '/messages/1', detail: 'must be an object' }],
    ],
    [
      'a role in an array',
      { messages: [{ role: ['user'], content: 'x' }] },
      [{ pointer: '/messages/0/role', detail: unlisted }],
    ],
    // `String(value)` throws for it, so that any caller could make the server report an unexpected error.
    [
      'a role that cannot be made a string',
      { messages: [{ role: { toString: 1 }, content: 'x' }] },
      [{ pointer: '/messages/0/role', detail: unlisted }],
    ],
    [
      'several errors',
      { messages: [{ role: 'User', content: null }, { content: 'x' }, null] },
      [
        { pointer: '/messages/0/role', detail: unlisted },
        { pointer: '/messages/0/content', detail: 'must be a string' },
        { pointer: '/messages/2', detail: 'must be an object' },
      ],
    ],
  ])('names what is wrong: %s', async (_, body, errors) => {
    expect(await send(body)).toMatchObject({ status: 400, code: 'invalid_request', errors });
  });

  it('names the first twenty errors', async () => {
    const { errors = [] } = await send({ messages: Array(21).fill(0) });
    expect(errors.map(({ pointer }) => pointer)).toEqual(
      Array.from({ length: 20 }, (_, n) => `/messages/${n}`),
    );
  });

  it('counts messages before it looks at any', async () => {
    const errors = [{ pointer: '/messages', detail: 'must have at most 8000 messages' }];
    expect(await send({ messages: Array(8001).fill(0) })).toMatchObject({ code: 'invalid_request', errors });
  });

  // A header's text is sent as Latin-1.
  const inUtf8 = Buffer.from('öpenai').toString('latin1');

  it.each(['', 'OpenAI', 'openai, openai', 'openai,anthropic', 'gpt', '__proto__', 'constructor', inUtf8])(
    'says first, and names all four, that the provider "%s" is not known',
    async (name) => {
      const { status, code, detail } = await send({ messages: 0 }, { 'X-LLM': name });
      expect([status, code]).toEqual([400, 'unknown_provider']);
      for (const id of providerIds) expect(detail).toContain(id);
    },
  );

  it('does not count white space around the name of the provider', async () => {
    expect(await send({ messages: 0 }, { 'X-LLM': ' openai ' })).toMatchObject({ code: 'invalid_request' });
  });

  it.each<[string, () => unknown]>([
    ['messages', () => ({ role: 'user', content: 'x' })],
    ['messages with fields that nothing reads', () => ({ name: 'x' })],
    ['numbers', () => 0],
    ['empty objects', () => ({})],
    ['odd roles', () => ({ role: 0 })],
    ['arrays', () => []],
  ])('thousands of %s -> each is looked at a fixed number of times', (_, message) => {
    const check = (body: unknown) => {
      const request = { body, get: (name: string) => (name === 'X-LLM' ? 'openai' : undefined) };
      const response = { set: () => undefined };
      try {
        checkConversation({ maxMessages: 8000 })(request as never, response as never, () => undefined);
      } catch (error) {
        expect(error).toMatchObject({ code: 'invalid_request' });
      }
    };
    const make = (size: number) => ({ messages: Array.from({ length: size }, message) });
    expect(growthOfVisits(make, check)).toBeLessThanOrEqual(17);
  });
});
