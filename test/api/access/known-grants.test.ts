import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type Grant, KnownGrants } from '../../../api/access/known-users.js';
import { userNamed } from '../../support/identities.js';

const endsAt = Number.POSITIVE_INFINITY;
const entry = (key: string): [string, Grant] => [key, { caller: { ...userNamed(key), scopes: [] }, endsAt }];

let grants: KnownGrants;
beforeEach(() => {
  grants = new KnownGrants(() => 0, []);
});

describe('a grant', () => {
  it('is unknown, however many ask for it at once -> is read once, and once more after a load', async () => {
    const read = vi.fn(async () => undefined);
    const askAll = () => Promise.all(Array.from({ length: 100 }, () => grants.find(['unknown'], read)));
    expect(new Set([...(await askAll()), ...(await askAll())])).toEqual(new Set([undefined]));
    expect(read).toHaveBeenCalledTimes(1);
    grants.replace([]);
    await askAll();
    expect(read).toHaveBeenCalledTimes(2);
  });

  it('was found -> is kept until a load does not find it', async () => {
    const read = vi.fn(async () => entry('a'));
    for (let n = 0; n < 3; n++) expect((await grants.find(['a', 'b'], read))?.name).toBe('a');
    expect(grants.check(['b', 'a'])?.name).toBe('a');
    expect(read).toHaveBeenCalledTimes(1);
    grants.replace([]);
    expect(grants.check(['a'])).toBeUndefined();
  });

  it('is another than was asked for -> is not taken for it', async () => {
    expect(await grants.find(['a'], async () => entry('b'))).toBeUndefined();
  });

  it('cannot be read -> fails for all who wait, and nothing is remembered', async () => {
    const fail = vi.fn(() => Promise.reject(new Error('away')));
    const asked = await Promise.allSettled([grants.find(['a'], fail), grants.find(['a'], fail)]);
    expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(fail).toHaveBeenCalledTimes(1);
    expect((await grants.find(['a'], async () => entry('a')))?.name).toBe('a');
  });

  it('is read while a load ends -> is read again, because it may be gone', async () => {
    const first = Promise.withResolvers<[string, Grant] | undefined>();
    const read = vi.fn(async (): Promise<[string, Grant] | undefined> => undefined);
    read.mockImplementationOnce(() => first.promise);
    const found = grants.find(['revoked'], read);
    grants.replace([]);
    first.resolve(entry('revoked'));
    expect(await found).toBeUndefined();
    expect(grants.check(['revoked'])).toBeUndefined();
    expect(read).toHaveBeenCalledTimes(2);
  });

  it('has each reading overtaken by changes for a second -> fails', async () => {
    let now = 0;
    const grants = new KnownGrants(() => now, []);
    const read = vi.fn(async () => {
      now += 400;
      grants.replace([]);
      return entry('a');
    });
    await expect(grants.find(['a'], read)).rejects.toMatchObject({ code: 'database_unavailable' });
    expect(read).toHaveBeenCalledTimes(3);
    expect(grants.check(['a'])).toBeUndefined();
  });

  it('is one of ten thousand unknown ones -> each is read once, and no more are remembered', async () => {
    const grants = new KnownGrants(() => 0, [entry('known')]);
    const read = vi.fn(async () => undefined);
    const keys = Array.from({ length: 10_000 }, (_, n) => `unknown ${n}`);
    for (let n = 0; n < 2; n++) await Promise.all(keys.map((key) => grants.find([key], read)));
    expect(read).toHaveBeenCalledTimes(10_000);
    expect(grants.check(['known'])?.name).toBe('known');
    // One more than there is room for: the oldest is forgotten.
    await grants.find(['another'], read);
    await grants.find(['unknown 0'], read);
    expect(read).toHaveBeenCalledTimes(10_002);
  });
});
