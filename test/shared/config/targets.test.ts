import { describe, expect, it } from 'vitest';
import { parseTargets } from '../../../shared/config/variable-types.js';

describe('parseTargets', () => {
  it('reads providers and their models in order; the first slash ends the provider', () => {
    expect(parseTargets(' anthropic , bedrock/us.meta.llama:0,vertexai/a/b')).toEqual([
      { provider: 'anthropic' },
      { provider: 'bedrock', model: 'us.meta.llama:0' },
      { provider: 'vertexai', model: 'a/b' },
    ]);
    expect(parseTargets('openai/x,openai')).toHaveLength(2);
  });

  it('reads none as nobody', () => {
    expect(parseTargets(' none ')).toEqual([]);
  });

  it.each([
    '',
    ',',
    'openai,',
    'OpenAI',
    'gemini',
    'none,openai',
    'openai,openai',
    'openai/',
    'openai/../x',
    '__proto__',
    'openai/x y',
    'openai,anthropic,bedrock,vertexai,openai/x',
  ])('refuses %j', (text) => {
    expect(parseTargets(text)).toBeUndefined();
  });
});
