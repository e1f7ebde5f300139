import { describe, expect, it } from 'vitest';
import { BytesInFlight } from '../../../api/access/bytes-in-flight.js';
import { userNamed } from '../../support/identities.js';

const limited = expect.objectContaining({
  code: 'rate_limited',
  status: 429,
  facts: expect.objectContaining({ retryAfterMs: 1000 }),
});
const overloaded = expect.objectContaining({
  code: 'overloaded',
  status: 500,
  facts: expect.objectContaining({ retryAfterMs: 1000 }),
});
const by = (name: string) => ({ ip: '192.0.2.1', user: { ...userNamed(name), scopes: [] } });
const from = (ip: string) => ({ ip });

describe('BytesInFlight', () => {
  it('bounds the bytes of a user, who may come again when some of them are gone', () => {
    const bytes = new BytesInFlight({ perUser: 100 });
    const first = bytes.open(by('one'));
    first.add(60);
    const second = bytes.open(by('one'));
    second.add(30);
    second.add(10);
    expect(() => second.add(1)).toThrow(limited);
    bytes.open(by('another')).add(100);
    first.release();
    first.release();
    second.add(60);
    expect(() => bytes.open(by('one')).add(1)).toThrow(limited);
  });

  it('counts nothing more for a request that has released its bytes', () => {
    const bytes = new BytesInFlight({ perUser: 100 });
    const gone = bytes.open(by('one'));
    gone.add(60);
    gone.release();
    expect(() => gone.add(1)).toThrow(expect.objectContaining({ code: 'invalid_json' }));
    const next = bytes.open(by('one'));
    next.add(60);
    next.add(40);
  });

  it('lets one request in that alone is larger', () => {
    const bytes = new BytesInFlight({ perUser: 100, inAll: 100 });
    const large = bytes.open(by('one'));
    large.add(90);
    large.add(1000);
    expect(() => bytes.open(by('one')).add(1)).toThrow(limited);
    expect(() => bytes.open(by('another')).add(1)).toThrow(overloaded);
  });

  it('bounds the bytes of everybody', () => {
    const bytes = new BytesInFlight({ perUser: 100, inAll: 150 });
    const one = bytes.open(by('one'));
    one.add(100);
    bytes.open(by('another')).add(50);
    expect(() => bytes.open(by('third')).add(1)).toThrow(overloaded);
    one.release();
    bytes.open(by('third')).add(100);
  });

  it('counts work that goes on without its request until that has ended, and refuses none', () => {
    const bytes = new BytesInFlight({ perUser: 100 });
    const { id } = by('one').user;
    const release = bytes.hold(id, 100);
    const releaseMore = bytes.hold(id, 50);
    expect(() => bytes.open(by('one')).add(1)).toThrow(limited);
    releaseMore();
    expect(() => bytes.open(by('one')).add(1)).toThrow(limited);
    release();
    const next = bytes.open(by('one'));
    next.add(60);
    next.add(40);
    expect(() => bytes.open(by('one')).add(1)).toThrow(limited);
  });

  it('counts by address for requests that need no credentials', () => {
    const bytes = new BytesInFlight({ perUser: 100 });
    bytes.open(from('192.0.2.1')).add(100);
    expect(() => bytes.open(from('::ffff:192.0.2.1')).add(1)).toThrow(limited);
    bytes.open(from('192.0.2.2')).add(1);
  });
});
