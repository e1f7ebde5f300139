import { describe, expect, it } from 'vitest';
import { parseSessions } from '../../../api/access/credentials.js';

const key = 'k'.repeat(43);
const other = 'o'.repeat(43);
const parse = (...cookie: string[]) => parseSessions({ headersDistinct: { cookie } });

describe('parseSessions', () => {
  it.each([
    [`quillgate_session=${key}`],
    [`a=b; quillgate_session=${key}; c="d;e"`],
    [`a=b;quillgate_session=${key}`],
    [`quillgate_session=${key}`, 'a=b'],
    [`quillgate_session=${key}; quillgate_session=${key}`],
    [`quillgate_session=x; quillgate_session=${key}`],
  ])('finds the key in %j', (...cookie) => {
    expect(parse(...cookie)).toEqual([key]);
  });

  it.each([
    ['nothing'],
    ['an empty header', ''],
    ['another name', `session=${key}`],
    ['another case', `Quillgate_Session=${key}`],
    ['an empty value', 'quillgate_session='],
    ['no value', 'quillgate_session'],
    ['a short key', `quillgate_session=${key.slice(1)}`],
    ['a long key', `quillgate_session=${key}k`],
    ['quotes', `quillgate_session="${key}"`],
    ['other characters', `quillgate_session=${key.slice(1)}+`],
    ['a key and more', `quillgate_session=${key}=`],
    ['16 KB of nonsense', '=;'.repeat(8000)],
  ])('finds none in %s', (_what, ...cookie) => {
    expect(parse(...cookie)).toEqual([]);
  });

  it('finds all that differ, in one header or in several', () => {
    const [mine, another] = [`quillgate_session=${key}`, `quillgate_session=${other}`];
    expect(parse(`${another}; ${mine}`)).toEqual([other, key]);
    expect(parse(mine, another)).toEqual([key, other]);
  });
});
