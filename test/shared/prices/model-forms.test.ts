import { describe, expect, it } from 'vitest';
import { formsOf } from '../../../shared/prices/model-forms.js';

const profile = 'arn:aws:bedrock:us-east-1:123456789012:inference-profile';
const foundation = 'arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model';

describe('formsOf', () => {
  it.each([
    ['claude-sonnet-4-5', 'claude-sonnet-4-5'],
    ['claude-sonnet-4-5-20250929', 'claude-sonnet-4-5'],
    ['claude-sonnet-4-5@20250929', 'claude-sonnet-4-5'],
    ['gpt-5-2025-08-07', 'gpt-5'],
    ['gpt-5-chat-latest', 'gpt-5-chat'],
    ['anthropic.claude-opus-4-7', 'anthropic.claude-opus-4-7'],
    ['anthropic.claude-opus-4-6-v1', 'anthropic.claude-opus-4-6'],
    ['us.anthropic.claude-opus-4-5-20251101-v1:0', 'anthropic.claude-opus-4-5'],
    ['us-gov.anthropic.claude-x-v1:0', 'anthropic.claude-x'],
    ['apac.amazon.nova-lite-v1:0', 'amazon.nova-lite'],
    [`${profile}/eu.anthropic.claude-opus-5-5`, 'anthropic.claude-opus-5-5'],
    [`${foundation}/mistral.mistral-large-2402-v1:0`, 'mistral.mistral-large-2402'],
  ])('%s -> may stand for the id %s', (model, id) => {
    expect(formsOf(model)).toContain(id);
  });

  it('a name with a region, a version and a date -> the closest id comes first', () => {
    expect(formsOf('eu.a.m-20250929-v1:0')).toEqual([
      ...['eu.a.m-20250929-v1:0', 'eu.a.m-20250929', 'eu.a.m'],
      ...['a.m-20250929-v1:0', 'a.m-20250929', 'a.m'],
    ]);
  });

  it.each([
    ['gpt-5-mini', 'gpt-5'],
    ['gpt-4-0613', 'gpt-4'],
    ['gpt-50', 'gpt-5'],
    ['claude-sonnet-5-5', 'claude-sonnet-5'],
    ['claude-opus-4-5-99999999', 'claude-opus-4-5'],
    ['gemini-2.0-flash-001', 'gemini-2.0-flash'],
    ['amazon.titan-embed-text-v2:0', 'amazon.titan-embed-text'],
    ['amazon.titan-embed-text-v2', 'amazon.titan-embed-text'],
    ['global.anthropic.claude-opus-5-5', 'anthropic.claude-opus-5-5'],
    ['anthropic/claude-opus-5-5', 'claude-opus-5-5'],
    ['arn:aws:bedrock:us-east-1:1:application-inference-profile/gpt-5', 'gpt-5'],
    ['arn:aws:s3:::foundation-model/gpt-5', 'gpt-5'],
    ['CLAUDE-OPUS-5', 'claude-opus-5'],
  ])('%s -> does not stand for %s', (model, id) => {
    expect(formsOf(model)).not.toContain(id);
  });
});
