import { describe, expect, it, vi } from 'vitest';
import { isModelAllowed, isSettable } from '../../../shared/models/model-names.js';

const arn = 'arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude';

describe('isModelAllowed', () => {
  const plain = ['gpt-5.4-mini', 'claude-sonnet-5@20260101', 'us.anthropic.claude-5-v1:0', 'a'.repeat(128)];
  const paths = ['projects/other/locations/us-central1/endpoints/1', 'publishers/google/models/gemini'];
  const odd = [arn, 'ARN:aws:bedrock', 'google/gemini', '.hidden', '', 'a'.repeat(129), 'gpt\n'];
  it('no list of models -> plain names and no others', () => {
    expect([...plain, ...paths, ...odd].filter((model) => isModelAllowed(model, {}))).toEqual(plain);
  });

  it('the default model -> is allowed, whatever it is', () => {
    expect(isModelAllowed(arn, { defaultModel: arn })).toBe(true);
    expect(isModelAllowed(arn, { defaultModel: arn, models: ['gpt-5'] })).toBe(true);
    expect(isModelAllowed(`${arn}-2`, { defaultModel: arn })).toBe(false);
  });

  it.each([
    ['gpt-5', 'gpt-5', true],
    ['gpt-5', 'gpt-5-mini', false],
    ['gpt-5', 'xgpt-5', false],
    ['gpt-*', 'gpt-', true],
    ['gpt-*', 'gpt-5-mini', true],
    ['gpt-*', 'o3', false],
    ['*-mini', 'gpt-5-mini', true],
    ['*-mini', 'gpt-5-mini-2', false],
    ['a*b*c', 'abc', true],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-c-b', false],
    ['ab*ba', 'aba', false],
    ['a*b*b', 'ab', false],
    ['**', 'anything', true],
    ['gpt.5', 'gptx5', false],
    ['arn:aws:bedrock:*:123456789012:inference-profile/*', arn, true],
  ])('the pattern %s and the model %s -> %s', (pattern, model, expected) => {
    expect(isModelAllowed(model, { models: ['never', pattern] })).toBe(expected);
  });

  it('what operators have set -> narrows the environment, and does not widen it', () => {
    const anything = { defaultModel: 'gemini', models: ['*'] };
    expect(isModelAllowed('projects/evil/x', { ...anything, environment: {} })).toBe(false);
    expect(isModelAllowed('gemini-pro', { ...anything, environment: {} })).toBe(true);
    expect(isModelAllowed('gemini-pro', { ...anything, environment: { models: ['gpt-*'] } })).toBe(false);
  });

  it.each([
    ['a*', '', 3999],
    ['*a', '*b', 4000],
  ])('patterns that make others backtrack, of %s%s -> each part is sought once', (part, last, parts) => {
    const find = vi.spyOn(String.prototype, 'indexOf');
    const model = 'a'.repeat(8000);
    isModelAllowed(model, { models: [part.repeat(4000) + last] });
    const sought = find.mock.contexts.filter((text) => String(text) === model).length;
    find.mockRestore();
    expect(sought).toBe(parts);
  });
});

describe('isSettable', () => {
  it.each([
    ['gemini-pro', undefined, true],
    ['*', undefined, true],
    ['gemini-*', undefined, true],
    ['projects/*', undefined, false],
    [arn, undefined, false],
    ['gpt-5', ['gpt-*'], true],
    ['gpt-5-*', ['gpt-*'], true],
    ['*', ['gpt-*'], false],
    ['gpt-5*', ['gpt-5'], false],
    [arn, ['arn:aws:bedrock:*'], true],
    ['*', ['*'], true],
  ])('%s in the environment %j -> %s', (pattern, models, expected) => {
    expect(isSettable(pattern, { models })).toBe(expected);
  });
});
