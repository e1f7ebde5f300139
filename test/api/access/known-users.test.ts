import { describe, expect, it } from 'vitest';
import { KnownUsers } from '../../../api/access/known-users.js';
import type { UserDigest } from '../../../db/access/users.js';
import { digestOf } from '../../../shared/credential-forms.js';
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

const withoutSecret = { ...rowOf('tokens alone', ''), secretHash: Buffer.alloc(0) };
const users = new KnownUsers({ first, admin }, [
  ...[rowOf('Zoë', 'a:b'), rowOf('bob', ''), rowOf('__proto__', 'c'), rowOf('ada', 'a', 'admin')],
  ...[rowOf('first', 'another', 'admin'), rowOf('root', 'of the database'), withoutSecret],
]);
const zoe = { user: userNamed('Zoë'), isOperator: false };

describe('a name and a secret', () => {
  it.each<[string, string, string, object]>([
    ['are of the database', 'Zoë', 'a:b', zoe],
    ['are odd', '__proto__', 'c', { user: userNamed('__proto__'), isOperator: false }],
    ['are of an operator', 'ada', 'a', { user: userNamed('ada'), isOperator: true }],
    // One of the name in the database is the user of the environment, with another secret.
    ['are of the environment, for operators', 'root', admin.secret, { user: admin.user, isOperator: true }],
    [
      'are one of the environment, one not',
      'root',
      'of the database',
      { user: admin.user, isOperator: false },
    ],
    // A password for chat is given to programs, so it opens no console, even for a user with the role `admin`.
    ['are of the environment, for chat', 'first', first.secret, { user: first.user, isOperator: false }],
    ['are the first one’s in the database', 'first', 'another', { user: first.user, isOperator: true }],
  ])('%s (%j, %j) -> are known as theirs', (_, name, secret, expected) => {
    expect(users.check(name, secret)).toMatchObject(expected);
  });

  const wrong = {
    ...{ Zoë: ['a', 'c', 'a:b\0'], zoë: ['a:b'], 'Zoe\u0308': ['a:b'], 'Zoë:a': ['b'], bob: [first.secret] },
    ...{ '': [''], constructor: [''], nobody: [''], alice: ['a'], ada: [admin.secret], root: ['a'] },
    ...{ first: [admin.secret, 'a:b', 'undefined'], 'tokens alone': ['', first.secret, 'undefined'] },
  };
  it.each(Object.entries(wrong))('%j, and none of %j -> are refused', (name, secrets) => {
    for (const secret of secrets) expect(users.check(name, secret)).toBeUndefined();
  });
});

describe('before anything is loaded', () => {
  it('the users of the environment are known, if they have secrets, and no others', () => {
    const early = new KnownUsers({ first, admin }, []);
    expect(early.check('first', first.secret)?.user).toEqual(first.user);
    expect(early.check('root', admin.secret)?.isOperator).toBe(true);
    expect([early.has('first'), early.has('alice')]).toEqual([true, false]);
    for (const environment of [{}, { first: { user: first.user } }])
      for (const name of ['', 'first'])
        for (const secret of ['', 'undefined'])
          expect(new KnownUsers(environment, []).check(name, secret)).toBeUndefined();
  });
});

describe('users who are suspended', () => {
  it('-> are known by name, also those that the environment names', () => {
    const since = new Date(1000);
    const known = new KnownUsers({ first, admin }, [
      { ...rowOf('Zoë', 'a:b'), suspendedAt: since },
      { ...rowOf('first', 'another'), suspendedAt: since },
      { ...rowOf('bob', ''), suspendedAt: null },
    ]);
    expect([...known.suspended]).toEqual(['Zoë', 'first']);
    expect(known.check('Zoë', 'a:b')).toMatchObject(zoe);
  });
});
