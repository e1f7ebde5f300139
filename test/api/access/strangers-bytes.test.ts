import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createStrangersBytes } from '../../../api/access/bytes-in-flight.js';

const facts = { detail: expect.any(String), retryAfterMs: 1000 };
const overloaded = expect.objectContaining({ code: 'overloaded', facts });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Bodies by name, each of an address, and the names of those that had to give way, in order. */
function startBytes() {
  const holdBytes = createStrangersBytes({ maxBytes: 100, maxMs: 5000 });
  const gone: string[] = [];
  return {
    gone,
    open: (name: string, { ip = '192.0.2.1', holds }: { ip?: string; holds: number }) => {
      const body = holdBytes({ ip });
      body.refusal?.addEventListener('abort', () => gone.push(name));
      body.resize(holds);
      return body;
    },
  };
}

describe('bodies without credentials that find no room', () => {
  it('come from one address -> its oldest ones give way, hold nothing and take nothing more', () => {
    const { open, gone } = startBytes();
    const first = open('first', { holds: 50 });
    open('second', { holds: 50 });
    open('third', { holds: 60 });
    expect(gone).toEqual(['first', 'second']);
    expect(first.refusal?.reason).toEqual(overloaded);
    expect(() => first.resize(1)).toThrow(overloaded);
    open('fourth', { holds: 40 });
    expect(gone).toHaveLength(2);
  });

  it('come from many addresses -> the oldest of the one that holds most gives way, also to itself', () => {
    const { open, gone } = startBytes();
    open('small and old', { ip: '192.0.2.2', holds: 10 });
    open('first of two', { ip: '2001:db8::1', holds: 30 });
    open('alone', { ip: '192.0.2.3', holds: 40 });
    const second = open('second of two', { ip: '2001:db8::2', holds: 20 });
    expect(gone).toEqual([]);
    open('new', { ip: '192.0.2.4', holds: 10 });
    expect(gone).toEqual(['first of two']);
    second.resize(90);
    expect(gone).toEqual(['first of two', 'second of two']);
  });
});

describe('a body without credentials', () => {
  it('has been read, and is released, once or twice -> it holds nothing, and no time is over', () => {
    const { open, gone } = startBytes();
    const body = open('first', { holds: 100 });
    body.release();
    body.release();
    open('second', { holds: 100 });
    expect(gone).toEqual(['first']);
    expect(vi.getTimerCount()).toBe(1);
  });

  it('has not arrived in its time -> is refused with 408, and its connection is closed', () => {
    const { open, gone } = startBytes();
    const late = open('late', { holds: 60 });
    vi.advanceTimersByTime(5000);
    const facts = expect.objectContaining({ status: 408, headers: { Connection: 'close' } });
    expect(late.refusal?.reason).toMatchObject({ facts });
    open('next', { holds: 100 });
    expect(gone).toEqual(['late']);
  });
});
