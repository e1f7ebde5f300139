import { describe, expect, it } from 'vitest';
import { StrangersBytes } from '../../../api/access/strangers-bytes.js';

const facts = { detail: expect.any(String), retryAfterMs: 1000 };
const overloaded = expect.objectContaining({ code: 'overloaded', facts });

/** Bodies by name, each of an address, and the names of those that had to give way, in order. */
function startBytes(maxBytes = 100) {
  const bytes = new StrangersBytes({ maxBytes });
  const gone: string[] = [];
  return {
    gone,
    open: (name: string, { ip = '192.0.2.1', holds }: { ip?: string; holds: number }) => {
      const body = bytes.open({ ip }, (failure) => {
        expect(failure).toEqual(overloaded);
        gone.push(name);
      });
      body.resize(holds);
      return body;
    },
  };
}

describe('bodies without credentials that find no room', () => {
  it('come from one address -> its oldest ones give way', () => {
    const { open, gone } = startBytes();
    open('first', { holds: 50 });
    open('second', { holds: 50 });
    open('third', { holds: 60 });
    expect(gone).toEqual(['first', 'second']);
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

  it('have given way, or have arrived -> they hold nothing, and take nothing more', () => {
    const { open, gone } = startBytes();
    const first = open('first', { holds: 100 });
    const second = open('second', { ip: '192.0.2.2', holds: 100 });
    expect(gone).toEqual(['first']);
    expect(() => first.resize(1)).toThrow(overloaded);
    first.release();
    second.release();
    second.release();
    open('third', { holds: 100 });
    expect(gone).toEqual(['first']);
  });
});
