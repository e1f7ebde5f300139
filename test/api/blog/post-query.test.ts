import type { Request, Response } from 'express';
import { describe, expect, it } from 'vitest';
import {
  checkPostQuery,
  queryOf,
  toCursor,
  toNewerCursor,
  toPostFilter,
} from '../../../api/blog/post-query.js';
import type { ProblemError } from '../../../shared/contract.js';
import { Failure } from '../../../shared/failures.js';

const id = '01900000-0000-7000-8000-000000000001';
const sortedAt = new Date('2026-11-20T12:34:56.789Z');
const cursor = toCursor({ sortedAt, id });
const back = toNewerCursor({ sortedAt, id });
const encode = (text: string) => Buffer.from(text).toString('base64url');

/** The errors of a query, or undefined. */
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

describe('checkPostQuery', () => {
  it.each([
    '',
    '?',
    '?&&',
    '?limit=1',
    '?limit=200&tag=a&author=b&q=c&status=draft&envelope=true',
    '?status=published',
    '?envelope=false',
    '?q=',
    '?q',
    '?q=%20+',
    `?cursor=${cursor}`,
    `?tag=${encodeURIComponent('🎉'.repeat(50))}`,
    `?author=${encodeURIComponent('🎉'.repeat(200))}`,
    `?q=${encodeURIComponent('🎉'.repeat(500))}`,
    '?tag=a%26b%3Dc+d',
    '?unknown=1&unknown=2&other=%00&bad=%E0%A4%A&%=1',
    '?__proto__=1&constructor=2&toString=3',
  ])('lets %s pass', (query) => {
    expect(check(query)).toEqual([]);
  });

  it.each(['', '0', '201', '-1', '+1', '1.0', '1e2', '0x10', '01', ' 5', 'ten', '99999999999'])(
    'refuses the limit %j',
    (limit) => {
      expect(check(`?limit=${limit}`)).toEqual([
        { pointer: 'limit', detail: 'must be a whole number from 1 to 200' },
      ]);
    },
  );

  it.each(['', 'Draft', 'drafts', 'draft%20', 'all', 'draft,published', '%00'])(
    'refuses the status %j',
    (status) => {
      expect(check(`?status=${status}`)).toEqual([
        { pointer: 'status', detail: 'must be published or draft' },
      ]);
    },
  );

  it.each(['', '1', 'TRUE', 'yes', 'true%20'])('refuses the envelope %j', (envelope) => {
    expect(check(`?envelope=${envelope}`)).toEqual([
      { pointer: 'envelope', detail: 'must be true or false' },
    ]);
  });

  it.each([
    ['a blank tag', '?tag=', 'tag', 'must not be blank'],
    ['a tag too long', `?tag=${'a'.repeat(51)}`, 'tag', 'must be at most 50 characters'],
    ['a blank author', '?author=%20', 'author', 'must not be blank'],
    ['an author too long', `?author=${'a'.repeat(201)}`, 'author', 'must be at most 200 characters'],
    ['a search too long', `?q=${'a'.repeat(501)}`, 'q', 'must be at most 500 characters'],
    ['NUL in a tag', '?tag=a%00', 'tag', 'must not contain NUL characters'],
    ['NUL in an author', '?author=%00a', 'author', 'must not contain NUL characters'],
    ['NUL in a search', '?q=a%00b', 'q', 'must not contain NUL characters'],
    ['a lone surrogate', '?q=%ED%A0%80', 'q', 'must be percent-encoded UTF-8'],
    ['a cut character', '?tag=%E0%A4', 'tag', 'must be percent-encoded UTF-8'],
    ['a cut escape', '?author=%E0%A4%A', 'author', 'must be percent-encoded UTF-8'],
    ['a percent sign alone', '?q=100%', 'q', 'must be percent-encoded UTF-8'],
    ['raw bytes', '?q=gr\u00c3\u00b6\u00c3\u009fe', 'q', 'must be percent-encoded UTF-8'],
    ['a repeated tag', '?tag=a&tag=b', 'tag', 'must be sent once'],
    ['a tag repeated in escapes', '?tag=a&t%61g=a', 'tag', 'must be sent once'],
    ['a repeated limit', '?limit=1&limit=1', 'limit', 'must be sent once'],
  ])('refuses %s', (_, query, pointer, detail) => {
    expect(check(query)).toEqual([{ pointer, detail }]);
  });

  it('lists all errors, at most 20, and quotes nothing', () => {
    const errors = check('?limit=canary&envelope=canary&cursor=canary&tag=%00canary');
    expect(errors.map(({ pointer }) => pointer)).toEqual(['limit', 'cursor', 'tag', 'envelope']);
    expect(JSON.stringify(errors)).not.toContain('canary');
    expect(check(`?${'q=a&'.repeat(100)}`)).toHaveLength(20);
  });
});

describe('a cursor', () => {
  it('leads to its place again', () => {
    expect(check(`?cursor=${cursor}`)).toEqual([]);
    expect(toPostFilter({ cursor }, { drafts: false }).after).toEqual({ sortedAt, id });
  });

  it('knows which way it leads', () => {
    expect(check(`?cursor=${back}`)).toEqual([]);
    const filter = toPostFilter({ cursor: back }, { drafts: false });
    expect(filter).toEqual({ limit: 100, drafts: false, before: { sortedAt, id } });
  });

  it.each([
    ['the first years', '0001-01-01T00:00:00.000Z'],
    ['before 1970', '1969-12-31T23:59:59.999Z'],
    ['the last years', '9999-12-31T23:59:59.999Z'],
  ])('reaches %s', (_, time) => {
    const position = { sortedAt: new Date(time), id };
    expect(toPostFilter({ cursor: toCursor(position) }, { drafts: false }).after).toEqual(position);
  });

  it.each([
    ['nothing', ''],
    ['what is no base64url', '%%%'],
    ['white space', `${cursor}%20`],
    ['one with more at its end', `${cursor}AA`],
    ['an id that is none', encode(`${sortedAt.getTime()}.x`)],
    ['an id in upper case', encode(`${sortedAt.getTime()}.${'A'.repeat(8)}${id.slice(8)}`)],
    ['a time that is none', encode(`NaN.${id}`)],
    ['a time with zeros before it', encode(`0${sortedAt.getTime()}.${id}`)],
    ['minus zero', encode(`-0.${id}`)],
    ['a year before the first', encode(`-62135596800001.${id}`)],
    ['a year after 9999', encode(`253402300800000.${id}`)],
    ['one that leads back twice', encode(`newer.newer.${sortedAt.getTime()}.${id}`)],
    ['one that leads nowhere', encode(`older.${sortedAt.getTime()}.${id}`)],
    ['SQL', encode(`0.${id}' or true--`)],
  ])('is not %s', (_, tampered) => {
    expect(check(`?cursor=${tampered}`)).toHaveLength(1);
    expect(check(`?cursor=${tampered}`)[0]?.pointer).toBe('cursor');
  });

  it.each([cursor, back])(
    'is not valid with any of its characters changed, or leads to another place',
    (whole) => {
      for (let at = 0; at < whole.length; at++) {
        const tampered = `${whole.slice(0, at)}${whole[at] === 'A' ? 'B' : 'A'}${whole.slice(at + 1)}`;
        const errors = check(`?cursor=${tampered}`);
        if (errors.length === 0) {
          const { after, before } = toPostFilter({ cursor: tampered }, { drafts: false });
          expect(after ?? before).not.toEqual({ sortedAt, id });
        }
      }
    },
  );
});

describe('toPostFilter', () => {
  it('asks for 100 posts where nothing is said', () => {
    expect(toPostFilter({}, { drafts: false })).toEqual({ limit: 100, drafts: false });
  });

  it('passes on what is said', () => {
    const query = { limit: 7, tag: 'a', author: 'b', q: 'c d', status: 'draft' } as const;
    expect(toPostFilter(query, { drafts: true })).toEqual({
      limit: 7,
      status: 'draft',
      tag: 'a',
      author: 'b',
      search: 'c d',
      drafts: true,
    });
  });

  it.each(['', ' ', '\u200b'])('takes the blank search %j for none', (q) => {
    expect(toPostFilter({ q }, { drafts: false }).search).toBeUndefined();
  });
});

describe('queryOf', () => {
  it('keeps the parameters of the list, and continues from the cursor', () => {
    const query = { limit: 2, cursor: 'old', tag: 'a&b', author: 'ä <x>', q: '', envelope: true };
    const sent = { ...query, unknown: 'x' };
    expect(queryOf({ ...sent, cursor: 'new' })).toBe(
      'limit=2&cursor=new&tag=a%26b&author=%C3%A4+%3Cx%3E&envelope=true',
    );
    expect(check(`?${queryOf({ ...query, cursor })}`)).toEqual([]);
  });
});
