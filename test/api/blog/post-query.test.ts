import type { Request, Response } from 'express';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checkPostQuery,
  queryOf,
  toCursor,
  toNewerCursor,
  toPostFilter,
} from '../../../api/blog/post-query.js';
import type { ProblemError } from '../../../shared/contracts/contract.js';
import { Failure } from '../../../shared/failures.js';

const id = '01900000-0000-7000-8000-000000000001';
const sortedAt = new Date('2026-11-20T12:34:56.789Z');
const cursor = toCursor({ sortedAt, id });
const encode = (text: string) => Buffer.from(text).toString('base64url');

/** The errors of a query; none if it passes. */
function check(query: string): ProblemError[] {
  let passed = false;
  try {
    checkPostQuery({ originalUrl: `/base/blogs${query}` } as Request, {} as Response, () => {
      passed = true;
    });
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'invalid_request') throw error;
    return error.facts.errors ?? [];
  }
  expect(passed).toBe(true);
  return [];
}

const notUtf8 = 'must be percent-encoded UTF-8';

describe('a query', () => {
  it.each([
    '',
    '?',
    '?&&',
    '?limit=1',
    '?limit=200&tag=a&author=b&q=c&status=draft&envelope=true',
    '?status=published&envelope=false',
    '?q=',
    '?q',
    '?q=%20+',
    `?cursor=${cursor}`,
    '?tag=a%26b%3Dc+d',
    '?unknown=1&unknown=2&other=%00&bad=%E0%A4%A&%=1',
    '?__proto__=1&constructor=2&toString=3',
  ])('is %s -> passes', (query) => {
    expect(check(query)).toEqual([]);
  });

  it.each<[name: string, detail: string, values: string[]]>([
    [
      'limit',
      'must be a whole number from 1 to 200',
      ['', '0', '201', '-1', '+1', '1.0', '1e2', '0x10', '01', ' 5', 'ten', '99999999999'],
    ],
    [
      'status',
      'must be published or draft',
      ['', 'Draft', 'drafts', 'draft%20', 'all', 'draft,published', '%00'],
    ],
    ['envelope', 'must be true or false', ['', '1', 'TRUE', 'yes', 'true%20']],
    ['tag', 'must not be blank', ['', '%20']],
    ['author', 'must not be blank', ['', '%20']],
    ...['tag', 'author', 'q'].flatMap((name): [string, string, string[]][] => [
      [name, 'must not contain NUL characters', ['a%00b', '%00a']],
      // A lone surrogate, a cut character, a cut escape, a percent sign alone, raw bytes.
      [name, notUtf8, ['%ED%A0%80', '%E0%A4', '%E0%A4%A', '100%', 'gr\u00c3\u00b6\u00c3\u009fe']],
    ]),
    ['tag', 'must be sent once', ['a&tag=b', 'a&t%61g=a']],
    ['limit', 'must be sent once', ['1&limit=1']],
    [
      'cursor',
      'is not a cursor of this list',
      [
        ...['', '%25%25%25', `${cursor}%20`, `${cursor}AA`],
        ...[`${sortedAt.getTime()}.x`, `${sortedAt.getTime()}.${'A'.repeat(8)}${id.slice(8)}`].map(encode),
        ...[`NaN.${id}`, `0${sortedAt.getTime()}.${id}`, `-0.${id}`].map(encode),
        // Before the first year, and after 9999.
        ...[`-62135596800001.${id}`, `253402300800000.${id}`].map(encode),
        ...[`newer.newer.${sortedAt.getTime()}.${id}`, `older.${sortedAt.getTime()}.${id}`].map(encode),
        encode(`0.${id}' or true--`),
      ],
    ],
  ])('has another %s than it may -> %s', (name, detail, values) => {
    for (const value of values)
      expect(check(`?${name}=${value}`), value).toEqual([{ pointer: name, detail }]);
  });

  it.each([
    ['tag', 50],
    ['author', 200],
    ['q', 500],
  ])('has a %s longer than %i characters -> is refused', (name, max) => {
    expect(check(`?${name}=${encodeURIComponent('🎉'.repeat(max))}`)).toEqual([]);
    const error = { pointer: name, detail: `must be at most ${max} characters` };
    expect(check(`?${name}=${encodeURIComponent('🎉'.repeat(max + 1))}`)).toEqual([error]);
  });

  it('has several errors -> all are listed, at most 20, and nothing is quoted', () => {
    const errors = check('?limit=canary&envelope=canary&cursor=canary&tag=%00canary');
    expect(errors.map(({ pointer }) => pointer)).toEqual(['limit', 'cursor', 'tag', 'envelope']);
    expect(JSON.stringify(errors)).not.toContain('canary');
    expect(check(`?${'q=a&'.repeat(100)}`)).toHaveLength(20);
  });
});

describe('a cursor', () => {
  const positions = fc.record({
    sortedAt: fc.date({
      min: new Date('0001-01-01T00:00:00.000Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    }),
    id: fc.uuid({ version: 7 }),
  });

  it('of any position and direction -> leads there again, and that way', () => {
    fc.assert(
      fc.property(positions, (position) => {
        for (const [made, name] of [
          [toCursor(position), 'after'],
          [toNewerCursor(position), 'before'],
        ] as const) {
          expect(check(`?cursor=${made}`)).toEqual([]);
          expect(toPostFilter({ cursor: made })).toEqual({ limit: 100, [name]: position });
        }
      }),
      {
        examples: [
          [{ sortedAt: new Date('0001-01-01T00:00:00.000Z'), id }],
          [{ sortedAt: new Date('9999-12-31T23:59:59.999Z'), id }],
        ],
      },
    );
  });

  it('of which any character is changed -> is not valid, or leads to another place', () => {
    const changes = fc.tuple(fc.boolean(), positions, fc.nat(), fc.constantFrom(...'AB09-_z'));
    fc.assert(
      fc.property(changes, ([isBack, position, place, character]) => {
        const whole = isBack ? toNewerCursor(position) : toCursor(position);
        const at = place % whole.length;
        const tampered = `${whole.slice(0, at)}${character}${whole.slice(at + 1)}`;
        if (tampered === whole || check(`?cursor=${tampered}`).length > 0) return;
        const leadsTo = (made: string) => toPostFilter({ cursor: made });
        expect(leadsTo(tampered)).not.toEqual(leadsTo(whole));
      }),
    );
  });
});

describe('toPostFilter', () => {
  it('nothing is said -> 100 posts', () => {
    expect(toPostFilter({})).toEqual({ limit: 100 });
  });

  it('all is said -> it is passed on', () => {
    const query = { limit: 7, tag: 'a', author: 'b', status: 'draft' } as const;
    expect(toPostFilter({ ...query, q: 'c d' })).toEqual({ ...query, search: 'c d' });
  });

  it.each(['', ' ', '\u200b'])('the search is %j -> there is none', (q) => {
    expect(toPostFilter({ q }).search).toBeUndefined();
  });
});

describe('queryOf', () => {
  it('the parameters of a list -> a query that continues from the cursor', () => {
    const query = { limit: 2, cursor: 'old', tag: 'a&b', author: 'ä <x>', q: '', envelope: true };
    const sent = { ...query, unknown: 'x' };
    expect(queryOf({ ...sent, cursor: 'new' })).toBe(
      'limit=2&cursor=new&tag=a%26b&author=%C3%A4+%3Cx%3E&envelope=true',
    );
    expect(check(`?${queryOf({ ...query, cursor })}`)).toEqual([]);
  });
});
