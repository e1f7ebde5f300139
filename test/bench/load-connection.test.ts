import { describe, expect, it } from 'vitest';
import { requestTo } from './load-connection.js';
import type { Traffic } from './traffic.js';

const traffic: Traffic = {
  origin: 'http://127.0.0.1',
  method: 'POST',
  headers: { 'Idempotency-Key': '{unique}', Accept: 'text/plain' },
  targets: [],
  bodies: ['{"title":"Post {unique}"}'],
  expected: { status: 200, body: { kind: 'empty' } },
};

describe('requestTo', () => {
  it('gives each request a key that no other has, without blanks', () => {
    const keys = Array.from(
      { length: 100 },
      () => requestTo('/', undefined, traffic).headers?.['Idempotency-Key'],
    );
    expect(new Set(keys).size).toBe(100);
    for (const key of keys) expect(key).toMatch(/^[\x21-\x7e]{1,255}$/);
  });
});
