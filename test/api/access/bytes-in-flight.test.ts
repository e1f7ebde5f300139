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
const by = (name: string) => ({ user: { ...userNamed(name), scopes: [] } });

describe('BytesInFlight', () => {
  it('bounds the bytes of a user, who may come again when some of them are gone', () => {
    const bytes = new BytesInFlight({ perUser: 100 });
    const first = bytes.open(by('one'));
    first.resize(60);
    const second = bytes.open(by('one'));
    second.resize(30);
    second.resize(40);
    expect(() => second.resize(41)).toThrow(limited);
    bytes.open(by('another')).resize(100);
    first.release();
    first.release();
    second.resize(100);
    expect(() => bytes.open(by('one')).resize(1)).toThrow(limited);
    second.resize(99);
    bytes.open(by('one')).resize(1);
  });

  it('counts nothing more for a request that has released its bytes', () => {
    const bytes = new BytesInFlight({ perUser: 100 });
    const gone = bytes.open(by('one'));
    gone.resize(60);
    gone.release();
    expect(() => gone.resize(1)).toThrow(expect.objectContaining({ code: 'invalid_json' }));
    const next = bytes.open(by('one'));
    next.resize(60);
    next.resize(100);
  });

  it('lets one request in that alone is larger', () => {
    const bytes = new BytesInFlight({ perUser: 100, inAll: 100 });
    const large = bytes.open(by('one'));
    large.resize(90);
    large.resize(1090);
    expect(() => bytes.open(by('one')).resize(1)).toThrow(limited);
    expect(() => bytes.open(by('another')).resize(1)).toThrow(overloaded);
  });

  it('bounds the bytes of everybody', () => {
    const bytes = new BytesInFlight({ perUser: 100, inAll: 150 });
    const one = bytes.open(by('one'));
    one.resize(100);
    bytes.open(by('another')).resize(50);
    expect(() => bytes.open(by('third')).resize(1)).toThrow(overloaded);
    one.release();
    bytes.open(by('third')).resize(100);
  });

  it('counts work that goes on without its request until that has ended, and refuses none', () => {
    const bytes = new BytesInFlight({ perUser: 100 });
    const { id } = by('one').user;
    const release = bytes.hold(id, 100);
    const releaseMore = bytes.hold(id, 50);
    expect(() => bytes.open(by('one')).resize(1)).toThrow(limited);
    releaseMore();
    expect(() => bytes.open(by('one')).resize(1)).toThrow(limited);
    release();
    const next = bytes.open(by('one'));
    next.resize(60);
    next.resize(100);
    expect(() => bytes.open(by('one')).resize(1)).toThrow(limited);
  });
});
