import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Failure, failureCodes, failureKinds } from '../../shared/failures.js';

describe('failureKinds', () => {
  it('calls only what may pass by itself retryable', () => {
    const retryable = failureCodes.filter((code) => failureKinds[code].retryable);
    expect(retryable.sort()).toEqual([
      'database_unavailable',
      'overloaded',
      'provider_error',
      'provider_rate_limited',
      'provider_timeout',
      'provider_unavailable',
      'queue_unavailable',
      'rate_limited',
      'timeout',
    ]);
  });
});

describe('Failure', () => {
  it('lets a fact overrule the table on retrying, either way', () => {
    expect(new Failure('provider_error', { retryable: false }).retryable).toBe(false);
    expect(new Failure('internal', { retryable: true }).retryable).toBe(true);
  });

  it('keeps its cause, and says nothing but its code', () => {
    const cause = new Error('canary');
    const failure = new Failure('queue_unavailable', { cause });
    expect(failure.cause).toBe(cause);
    expect(failure.message).toBe('queue_unavailable');
  });
});

describe('docs/errors.md', () => {
  it('lists every code with its status, and no other', () => {
    const rows = readFileSync('docs/errors.md', 'utf8').matchAll(/^\| (\d{3}) \| `(\w+)` \|/gm);
    const listed = Object.fromEntries([...rows].map(([, status, code]) => [code, Number(status)]));
    const kinds = Object.entries(failureKinds).map(([code, { status }]) => [code, status]);
    expect(listed).toEqual(Object.fromEntries(kinds));
  });
});
