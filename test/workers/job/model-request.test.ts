import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import { poolConfig } from '../../../shared/config/pool-config.js';
import type { ProviderId } from '../../../shared/contract.js';
import type { ImagePart } from '../../../shared/conversation.js';
import { type ModelRequest, schemaOf, toModelRequest } from '../../../workers/job/model-request.js';

const at = (url: string): ImagePart => ({ type: 'image', url });
const elsewhere = { OPENAI_BASE_URL: 'https://llm.example/v1', ANTHROPIC_BASE_URL: 'https://relay.example' };

/** Whether a worker with these variables asks the provider for an image at this address. */
function mayFetch(
  image: ImagePart,
  variables: Record<string, string>,
  provider: 'openai' | 'anthropic' = 'openai',
): boolean {
  const keys = { OPENAI_API_KEY: 'x', ANTHROPIC_API_KEY: 'x', REDIS_URL: 'redis://localhost' };
  const settings = poolConfig(parseConfig({ ...keys, ...variables }, 'worker'), provider);
  const job = { provider, model: 'm', turns: [{ role: 'user' as const, content: [image] }] };
  try {
    return toModelRequest(job, settings).turns.length === 1;
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_request', facts: { refusedParameter: 'images' } });
    return false;
  }
}

describe.each(['openai', 'anthropic'] as const)('the address of an image for %s', (provider) => {
  const cat = at('https://images.example.org/cat.png');

  it('the provider itself is asked -> it is sent, for any host', () => {
    expect(mayFetch(cat, {}, provider)).toBe(true);
  });

  it.each<[string, boolean]>([
    ['none', false],
    ['https', true],
    ['images.example.org', true],
    ['IMAGES.example.org', true],
    ['other.example,*.example.org', true],
    ['*.images.example.org', false],
    ['example.org', false],
    ['other.example', false],
    ['images.example.org:8443', false],
  ])('another server is asked, and IMAGE_HOSTS is %s -> it is sent: %s', (hosts, expected) => {
    expect(mayFetch(cat, { ...elsewhere, IMAGE_HOSTS: hosts }, provider)).toBe(expected);
  });

  it('another server is asked, and no host is allowed -> it is refused, and a data URL is sent', () => {
    expect(mayFetch(cat, elsewhere, provider)).toBe(false);
    const stored: ImagePart = { type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64), bytes: 1 };
    expect(mayFetch(stored, elsewhere, provider)).toBe(true);
  });

  it('another server is asked for what only looks like an allowed host -> it is refused', () => {
    for (const url of ['https://images.example.org.evil.example/', 'https://evil.example/images.example.org'])
      expect(mayFetch(at(url), { ...elsewhere, IMAGE_HOSTS: 'images.example.org' }, provider)).toBe(false);
  });

  it('a port of an allowed host -> that port alone, if the list names one', () => {
    const hosts = { ...elsewhere, IMAGE_HOSTS: '*.example.org:8443' };
    expect(mayFetch(at('https://images.example.org:8443/cat.png'), hosts, provider)).toBe(true);
    expect(mayFetch(cat, hosts, provider)).toBe(false);
  });
});

it('the simulator plays the provider -> any host', () => {
  const settings = poolConfig(
    parseConfig({ SIMULATOR_URL: 'http://127.0.0.1:1', OPENAI_BASE_URL: 'https://llm.example/v1' }, 'config'),
    'openai',
  );
  expect(settings.imageHosts).toBeUndefined();
});

describe('schemaOf', () => {
  const requestOf = (parameters: ModelRequest['parameters'], model = 'm'): ModelRequest => ({
    ...{ model, maxOutputTokens: 1, turns: [], parameters },
  });
  const schema = { type: 'object' };
  const format = { type: 'json_schema', name: 'n', schema } as const;

  it.each<[ProviderId, ModelRequest['parameters'], boolean]>([
    ['openai', { format }, true],
    ['anthropic', { format }, true],
    ['bedrock', { tools: [{ name: 'f', strict: true }] }, true],
    ['vertexai', { format }, false],
    ['openai', { tools: [{ name: 'f', parameters: schema }] }, false],
    ['openai', { format: { type: 'json_object' } }, false],
    ['openai', undefined, false],
  ])('of %s and %j: %s', (provider, parameters, isCompiled) => {
    expect(schemaOf(provider, requestOf(parameters)) !== undefined).toBe(isCompiled);
  });

  it('is another for another schema and another model, and the same for other descriptions', () => {
    const digests = [
      requestOf({ format }),
      requestOf({ format: { ...format, schema: { type: 'array' } } }),
      requestOf({ format }, 'other'),
      requestOf({ tools: [{ name: 'f', parameters: schema, strict: true }] }),
    ].map((request) => schemaOf('openai', request));
    expect(new Set(digests).size).toBe(4);
    expect(schemaOf('openai', requestOf({ format: { ...format, description: 'd' }, seed: 1 }))).toBe(
      digests[0],
    );
  });
});
