import { describe, expect, it } from 'vitest';
import type { ProviderId } from '../../../shared/contract.js';
import { ModelMemory, schemaOf } from '../../../workers/job/model-memory.js';
import type { ModelRequest } from '../../../workers/job/model-request.js';

const requestOf = (parameters: ModelRequest['parameters'], model = 'm'): ModelRequest => ({
  ...{ model, maxOutputTokens: 1, turns: [], parameters },
});
const schema = { type: 'object' };
const format = { type: 'json_schema', name: 'n', schema } as const;

describe('ModelMemory', () => {
  it('knows the last hundred schemas that were used, and forgets the one that was used longest ago', () => {
    const memory = new ModelMemory();
    for (let n = 0; n < 100; n += 1) memory.recordUse(`${n}`);
    memory.recordUse('0');
    memory.recordUse('another');
    expect(['0', '1', '2', 'another'].map((one) => memory.hasUsed(one))).toEqual([true, false, true, true]);
  });

  const request = requestOf({ temperature: 0 });
  const isOmittedFor = (memory: ModelMemory, user: string) =>
    memory.omittedFrom(request, user).hints?.has('temperature') ?? false;

  it('is told of a refusal by more than a hundred users -> knows the first hundred by their names', () => {
    const memory = new ModelMemory();
    for (let n = 0; n < 101; n += 1) memory.recordRefusal(request, ['temperature'], `${n}`);
    expect(['0', '99', '100', 'another'].map((user) => isOmittedFor(memory, user))).toEqual(
      Array(4).fill(true),
    );
    memory.refute(request, { hints: new Set(['temperature']) }, 'another');
    expect(['0', '99', '100', 'another'].map((user) => isOmittedFor(memory, user))).toEqual([
      ...[true, true, false, false],
    ]);
  });

  it('has more than a hundred users whose calls failed without a part -> forgets that it was refused', () => {
    const memory = new ModelMemory();
    for (const user of ['a', 'b']) memory.recordRefusal(request, ['temperature'], user);
    for (let n = 0; n < 100; n += 1) memory.forget(request, { hints: new Set(['temperature']) }, `${n}`);
    expect(isOmittedFor(memory, 'a')).toBe(true);
    memory.forget(request, { hints: new Set(['temperature']) }, '100');
    expect(isOmittedFor(memory, 'a')).toBe(false);
  });
});

describe('schemaOf', () => {
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
