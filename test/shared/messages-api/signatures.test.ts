import { describe, expect, it } from 'vitest';
import { fromSignature, toSignature } from '../../../shared/messages-api/signatures.js';

const data = '{"text":"größe"}';
const encoded = Buffer.from(data).toString('base64url');

describe('a signature', () => {
  it.each([
    'm',
    'gpt-5.2',
    'a/b.c:d',
    'arn:aws:bedrock:eu:1:inference-profile/eu.amazon.nova-pro-v1:0',
    '..',
  ])('of the model %s -> read back as it was', (model) => {
    for (const provider of ['openai', 'bedrock', 'vertexai'] as const) {
      const part = { type: 'opaque', provider, model, data } as const;
      expect(fromSignature(toSignature(part))).toEqual(part);
    }
  });

  it('of a phase of OpenAI -> the start of its text', () => {
    const part = { type: 'opaque', provider: 'openai', model: 'm', data: '{"phase":"commentary"}' } as const;
    expect(fromSignature(toSignature(part))).toEqual({ ...part, role: 'start' });
  });

  it.each([
    ...['', 'openai', 'openai.m', `openai..${encoded}`, `openai.${encoded}`, `OpenAI.m.${encoded}`],
    ...[
      `anthropic.m.${encoded}`,
      `x.m.${encoded}`,
      `openai.m.${encoded}=`,
      `openai.m. ${encoded}`,
      'openai.m.',
    ],
    ...[`openai.${'m'.repeat(2049)}.${encoded}`, `openai.m.${Buffer.from('[1]').toString('base64url')}`],
    `openai.m.${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}`,
    'EqQBCkYIBhgCKkA.b/c+d==',
  ])('that is none of ours: %s -> nothing', (text) => {
    expect(fromSignature(text)).toBeUndefined();
  });
});
