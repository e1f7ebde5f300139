import { gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import type { ChatCall } from '../support/deployment.js';
import { memoryOf, readProcessTable } from '../support/process-table.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { fault } from './support/fault.js';

const badNames = [
  '',
  'OpenAI',
  'openai, openai',
  'openai,anthropic',
  'gpt',
  '__proto__',
  'constructor',
  'öpenai',
];

fault(
  {
    id: 'S3',
    injected: 'X-LLM missing, twice, of another case, unknown, __proto__, with white space',
  },
  async (books) => {
    await books.start();
    for (const name of badNames) {
      const { status, body } = await books.chat({ headers: { 'X-LLM': latin1(name) } });
      expect({ status, code: body.code }).toEqual({ status: 400, code: 'unknown_provider' });
      for (const id of providerIds) expect(body.detail).toContain(id);
    }
    // White space around a value is not part of it (RFC 9110, 5.5).
    expect((await books.chat({ headers: { 'X-LLM': ' openai ' } })).status).toBe(200);
    return `${badNames.length} × 400 naming the four; white space around the name is not part of it`;
  },
);

/** A text that is sent as the bytes of UTF-8. */
const latin1 = (text: string): string => Buffer.from(text).toString('latin1');

const manyKeys = Array.from({ length: 100_000 }, (_, place) => `"${place.toString(36)}":0`).join();
const deep = '['.repeat(50_000) + ']'.repeat(50_000);
const bad: [status: number, call: ChatCall][] = [
  [413, { body: `{"messages":[{"content":"${'x'.repeat(1_048_576)}"}]}` }],
  [413, { body: gzipSync(Buffer.alloc(100_000_000)), headers: { 'Content-Encoding': 'gzip' } }],
  [400, { body: deep }],
  [400, { body: `{"messages":[],"x":${deep}}` }],
  [400, { body: `{${manyKeys}}` }],
  [400, { body: '{"__proto__":{"messages":[{"content":"x"}]}}' }],
  [415, { body: '{"messages":[{"content":"x"}]}', headers: { 'Content-Type': 'text/plain' } }],
  [400, { body: '' }],
  [400, { body: '\ufeff{"messages":[{"content":"x"}]}' }],
];

fault(
  {
    id: 'S4',
    injected: 'bodies over the limit, a bomb, 50,000 deep, 100,000 keys, __proto__, text, none, BOM',
  },
  async (books) => {
    await books.start();
    for (let round = 0; round < 10; round += 1) await refuseAll(books);
    const before = apiMemory(books);
    for (let round = 0; round < 20; round += 1) await refuseAll(books);
    const grownMegabytes = Math.round((apiMemory(books) - before) / 1e6);
    // One bomb alone would unfold to 100 MB.
    expect(grownMegabytes).toBeLessThan(60);
    expect(codeOf(await books.chat())).toBe('ok');
    return `${30 * bad.length} × 400, 413 or 415; the API's memory ${grownMegabytes} MB more after the last 20 rounds`;
  },
);

async function refuseAll(books: Books): Promise<void> {
  for (const [status, call] of bad) expect((await books.chat(call)).status).toBe(status);
}

const apiMemory = ({ deployment }: Books): number => memoryOf(readProcessTable(), deployment.api.pid);
