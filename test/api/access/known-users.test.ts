import { describe, expect, it } from 'vitest';
import { KnownUsers } from '../../../api/access/known-users.js';
import type { UserDigest } from '../../../db/access/users.js';
import { digestOf } from '../../../shared/access-token.js';
import { userNamed } from '../../support/identities.js';

const first = {
  user: { ...userNamed('first'), id: 'made of the name' },
  secret: 'the secret: of the first 🎉',
};
const admin = { user: { ...userNamed('root'), id: 'of the environment' }, secret: 'of the environment' };

const rowOf = (name: string, secret: string, role: UserDigest['role'] = 'user'): UserDigest => ({
  ...userNamed(name),
  secretHash: digestOf(secret),
  role,
});

describe('KnownUsers', () => {
  it('knows the users of the environment before anything is loaded, and no others', () => {
    const users = new KnownUsers({ first }, []);
    expect(users.check(first.user.name, first.secret)?.user).toEqual(first.user);
    expect(users.check(first.user.name, 'a')).toBeUndefined();
    expect(users.check('alice', 'a')).toBeUndefined();
    expect([users.has('first'), users.has('alice')]).toEqual([true, false]);
    expect(new KnownUsers({}, []).check('', '')).toBeUndefined();
  });

  it('distinguishes users byte for byte', () => {
    const rows = [rowOf('Zoë', 'a:b'), rowOf('bob', ''), rowOf('__proto__', 'c')];
    const users = new KnownUsers({ first }, rows);
    expect(users.check('Zoë', 'a:b')?.user).toEqual(userNamed('Zoë'));
    expect(users.check('__proto__', 'c')?.user).toEqual(userNamed('__proto__'));
    for (const [name, secret] of [
      ['Zoë', 'a'],
      ['Zoë', 'c'],
      ['Zoë', 'a:b\0'],
      ['zoë', 'a:b'],
      ['Zoe\u0308', 'a:b'],
      ['Zoë:a', 'b'],
      ['bob', first.secret],
      ['', ''],
      ['constructor', ''],
      ['first', 'a:b'],
    ] as const)
      expect(users.check(name, secret)).toBeUndefined();
  });

  it('takes one of the name in the database for the user of the environment, with another secret', () => {
    const users = new KnownUsers({ first }, [rowOf(first.user.name, 'another')]);
    for (const secret of ['another', first.secret])
      expect(users.check(first.user.name, secret)?.user).toEqual(first.user);
    expect(users.check(first.user.name, 'neither')).toBeUndefined();
  });

  it('calls an operator who has a secret of a user with the role admin', () => {
    const ofFirst = rowOf(first.user.name, 'c', 'admin');
    const rows = [rowOf('ada', 'a', 'admin'), rowOf('bob', 'b'), rowOf('root', 'of the database'), ofFirst];
    const users = new KnownUsers({ first, admin }, rows);
    const isOperator = (name: string, secret: string) => users.check(name, secret)?.isOperator;
    expect(new KnownUsers({ first, admin }, []).check('root', admin.secret)?.isOperator).toBe(true);
    expect(users.check('root', admin.secret)).toMatchObject({ user: admin.user, isOperator: true });
    expect([isOperator('ada', 'a'), isOperator('bob', 'b')]).toEqual([true, false]);
    expect(isOperator('root', 'of the database')).toBe(false);
    // A password for chat is given to programs, so it opens no console, even for a user with the role `admin`.
    expect([isOperator('first', first.secret), isOperator('first', 'c')]).toEqual([false, true]);
    for (const [name, secret] of [
      ['ada', admin.secret],
      ['root', 'a'],
      ['first', admin.secret],
      ['nobody', ''],
    ] as const)
      expect(users.check(name, secret)).toBeUndefined();
  });

  it('refuses users without a secret', () => {
    const withoutSecret = { ...rowOf('tokens alone', ''), secretHash: Buffer.alloc(0) };
    const users = new KnownUsers({ first: { user: first.user } }, [withoutSecret]);
    for (const secret of ['', first.secret, 'undefined'])
      for (const name of [withoutSecret.name, 'first']) expect(users.check(name, secret)).toBeUndefined();
  });
});
