import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import { type PoolConfig, poolConfig } from '../../../shared/config/pool-config.js';
import type { ProviderId } from '../../../shared/contracts/contract.js';
import type { ImagePart, Part, Turn } from '../../../shared/conversation.js';
import type { ModelParameters } from '../../../shared/models/model-parameters.js';
import { parametersFor } from '../../../shared/models/provider-support.js';
import { imageBytesOf, toModelRequest } from '../../../workers/job/model-request.js';
import { poolSettings } from '../../support/chat-jobs.js';

/** Whether a worker with these variables asks the provider for an image at this address. */
function mayFetch(part: Part, variables: Record<string, string>, provider: ProviderId): boolean {
  const keys = { OPENAI_API_KEY: 'x', ANTHROPIC_API_KEY: 'x', REDIS_URL: 'redis://localhost' };
  const settings = poolConfig(parseConfig({ ...keys, ...variables }, 'worker'), provider);
  const job = { provider, model: 'm', user: 'M', turns: [{ role: 'user' as const, content: [part] }] };
  try {
    return toModelRequest(job, settings).turns.length === 1;
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_request', facts: { refusedParameter: 'images' } });
    return false;
  }
}

describe.each(['openai', 'anthropic'] as const)('an image for %s', (provider) => {
  const at = (url: string): ImagePart => ({ type: 'image', url });
  const cat = at('https://images.example.org/cat.png');
  const inStore: ImagePart = { type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64), bytes: 1 };
  const elsewhere = { OPENAI_BASE_URL: 'https://llm.example/v1', ANTHROPIC_BASE_URL: 'https://ask.example' };

  it('the provider itself is asked -> sent, from any host', () => {
    expect(mayFetch(cat, {}, provider)).toBe(true);
  });

  it.each<[string | undefined, ImagePart, boolean]>([
    [undefined, cat, false],
    [undefined, inStore, true],
    ['none', cat, false],
    ['https', cat, true],
    ['images.example.org', cat, true],
    ['IMAGES.example.org', cat, true],
    ['other.example,*.example.org', cat, true],
    ['*.images.example.org', cat, false],
    ['example.org', cat, false],
    ['other.example', cat, false],
    ['images.example.org:8443', cat, false],
    ['images.example.org', at('https://images.example.org.evil.example/'), false],
    ['images.example.org', at('https://evil.example/images.example.org'), false],
    ['*.example.org:8443', at('https://images.example.org:8443/cat.png'), true],
  ])('another server is asked, and IMAGE_HOSTS is %s -> of %j sent: %s', (hosts, image, isSent) => {
    const variables = { ...elsewhere, ...(hosts && { IMAGE_HOSTS: hosts }) };
    const inResult: Part = { type: 'tool_result', callId: 'a', content: [image] };
    expect([image, inResult].map((part) => mayFetch(part, variables, provider))).toEqual([isSent, isSent]);
  });
});

it('the simulator plays the provider -> any host', () => {
  const variables = { SIMULATOR_URL: 'http://127.0.0.1:1', OPENAI_BASE_URL: 'https://llm.example/v1' };
  expect(poolConfig(parseConfig(variables, 'config'), 'openai').imageHosts).toBeUndefined();
});

it('images of the user and in results -> the bytes of both', () => {
  const image: ImagePart = { type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64), bytes: 3 };
  const result: Part = { type: 'tool_result', callId: 'a', content: [{ type: 'text', text: 'See' }, image] };
  expect(imageBytesOf({ turns: [{ role: 'user', content: [result, image] }] })).toBe(6);
});

describe('the request of a job', () => {
  const asked: Turn = { role: 'user', content: 'Hello' };
  const requestOf = (parameters: ModelParameters, turns = [asked], own?: Partial<PoolConfig>) =>
    toModelRequest({ provider: 'anthropic', user: 'M', turns, parameters }, poolSettings(own));

  it.each<[asked: number | undefined, limits: string[] | undefined, sent: number | undefined]>([
    [100_000, undefined, 100_000],
    [undefined, undefined, undefined],
    [99, ['100'], 99],
    [101, ['100'], 100],
    [undefined, ['100'], 100],
    // The first name that fits counts, else the number alone; its model is `m`.
    [undefined, ['100', 'n*=7', '*=8', 'm=9'], 8],
    [undefined, ['100', 'n*=7'], 100],
    [101, ['n*=7'], 101],
  ])('for %s tokens, where the limits are %j -> asks for %s', (maxOutputTokens, limits, sent) => {
    const request = requestOf({ maxOutputTokens }, [asked], { maxOutputTokens: limits });
    expect(request.maxOutputTokens).toBe(sent);
  });

  it('of a user, where users are told -> has a hash, the same for the same user and key', () => {
    const userOf = (user: string, key?: string) => {
      const given = { REDIS_URL: 'redis://localhost', ...(key && { PROVIDER_USER_KEY: key }) };
      const settings = poolConfig(parseConfig({ ...given, ANTHROPIC_API_KEY: 'x' }, 'worker'), 'anthropic');
      const job = { provider: 'anthropic' as const, model: 'm', turns: [asked], user };
      return toModelRequest(job, settings).user;
    };
    const [key, other] = ['a key of 16 letters', 'b key of 16 letters'];
    const hash = userOf('ada', key);
    expect(hash).toMatch(/^[\w-]{32}$/);
    expect(userOf('ada', key)).toBe(hash);
    expect(new Set([hash, userOf('bob', key), userOf('ada', other)]).size).toBe(3);
    expect(userOf('ada')).toBeUndefined();
  });

  it('without a model, of a pool that has none -> invalid_request', () => {
    const settings = { ...poolSettings(), model: undefined };
    expect(() => toModelRequest({ provider: 'openai', user: 'M', turns: [asked] }, settings)).toThrow(
      'invalid_request',
    );
  });

  it('with hints -> has those that its provider knows', () => {
    const hints = { temperature: 0.5, seed: 2 ** 40, presencePenalty: 2, stop: ['x'] };
    expect(requestOf(hints).parameters).toEqual(parametersFor('anthropic', hints));
    expect(requestOf(hints).parameters).not.toHaveProperty('seed');
  });

  it('that may be shown thinking, in a pool that asks for it -> asks for it in words', () => {
    const asks = (asksThinking: boolean, reasoning?: 'opaque' | 'shown') => {
      const job = { provider: 'anthropic' as const, user: 'M', turns: [asked], reasoning };
      return toModelRequest(job, { ...poolSettings(), asksThinking }).asksThinking ?? false;
    };
    expect([asks(true, 'shown'), asks(true, 'opaque'), asks(true), asks(false, 'shown')]).toEqual([
      ...[true, false, false, false],
    ]);
  });

  it('of callers who named what may come before any text -> may be blank at that end', () => {
    const result: Turn = { role: 'user', content: [{ type: 'tool_result', callId: 'a', content: 'x' }] };
    const ends = [requestOf({}), requestOf({ stop: ['x'] }), requestOf({ maxOutputTokens: 9 })];
    const all = [...ends, requestOf({}, [asked, result]), requestOf({}, [result, asked])];
    expect(all.map(({ blankAllowedFor }) => blankAllowedFor)).toEqual([
      [],
      ['stop'],
      ['length'],
      ['stop'],
      [],
    ]);
  });
});

describe('the key of a request for what OpenAI has cached', () => {
  const keyOf = (own: object) => {
    const turns: Turn[] = [{ role: 'user', content: 'Hello' }];
    return toModelRequest({ provider: 'openai', user: 'M', turns, ...own }, poolSettings()).cacheKey;
  };
  const longer: Turn[] = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Hi' },
  ];

  it('the caller has one -> that; else the same in a conversation of a user, and another in others', () => {
    expect(keyOf({ parameters: { cacheKey: 'own' } })).toBe('own');
    expect(keyOf({})).toMatch(/^[0-9a-f]{32}$/);
    expect(keyOf({ turns: longer })).toBe(keyOf({}));
    const others = [{ user: 'V' }, { turns: [{ role: 'user', content: 'Bye' }] }].map(keyOf);
    expect(new Set([keyOf({}), ...others]).size).toBe(3);
    expect(keyOf({ provider: 'anthropic' })).toBeUndefined();
  });
});
