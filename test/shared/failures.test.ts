import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Failure, type FailureCode, failureCodes, failureKinds } from '../../shared/failures.js';

/** As promised to clients; every server-side failure of chat is a 500. */
const promised: [number, FailureCode[]][] = [
  [400, ['invalid_json', 'invalid_request', 'empty_conversation', 'unknown_provider']],
  [401, ['unauthorized']],
  [403, ['insufficient_scope', 'cross_origin']],
  [404, ['not_found']],
  [405, ['method_not_allowed']],
  [409, ['slug_taken', 'name_taken', 'own_user']],
  [412, ['precondition_failed']],
  [413, ['payload_too_large']],
  [415, ['unsupported_media_type']],
  [422, ['idempotency_key_reused']],
  [429, ['rate_limited']],
  [500, ['provider_error', 'provider_rejected', 'provider_rate_limited', 'provider_timeout']],
  [500, ['context_length_exceeded']],
  [
    500,
    ['content_blocked', 'provider_unavailable', 'overloaded', 'timeout', 'queue_unavailable', 'internal'],
  ],
  [503, ['database_unavailable']],
];

describe('failureKinds', () => {
  it.each(promised)('answers %i for %j', (status, codes) => {
    for (const code of codes) expect(new Failure(code).status, code).toBe(status);
  });

  it('has no code that is not promised', () => {
    expect([...failureCodes].sort()).toEqual(promised.flatMap(([, codes]) => codes).sort());
  });

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
