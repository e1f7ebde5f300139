import { describe, expect, it } from 'vitest';
import { etagOf, expectedVersions } from '../../../api/blog/post-representations.js';
import { Failure } from '../../../shared/failures.js';

const mark = { version: 3, updatedAt: '2026-11-20T12:34:56.789Z' };
const other = { version: 12, updatedAt: '2026-11-21T00:00:00.000Z' };

describe('etagOf', () => {
  it('is a strong tag of its own for each representation', () => {
    const tags = [etagOf(mark), etagOf(mark, '-md'), etagOf(mark, '-html-0a1b2c3d')];
    for (const tag of tags) expect(tag).toMatch(/^"[!-~]+"$/);
    expect(new Set(tags).size).toBe(3);
  });

  it('changes with the version and with the time', () => {
    expect(etagOf({ ...mark, version: 4 })).not.toBe(etagOf(mark));
    expect(etagOf({ ...mark, updatedAt: '2026-11-20T12:34:56.790Z' })).not.toBe(etagOf(mark));
  });
});

describe('expectedVersions', () => {
  it('asks for nothing without a header, or with a star', () => {
    expect(expectedVersions(undefined)).toBeUndefined();
    expect(expectedVersions('*')).toBeUndefined();
  });

  it('reads the tag of any representation', () => {
    expect(expectedVersions(etagOf(mark))).toEqual([mark]);
    const tags = ['-md', '-html-0a1b2c3d', '-html'].map((suffix) => etagOf(mark, suffix));
    expect(expectedVersions(`${tags.join(' , ')}, ${etagOf(other)}`)).toEqual([mark, mark, mark, other]);
  });

  it.each(['', '-md', '-html-0a1b2c3d'])(
    'reads a tag that a proxy has made weak or named anew: %s',
    (suffix) => {
      const compressed = etagOf(mark, `${suffix}-gzip`);
      for (const tag of [`W/${etagOf(mark, suffix)}`, compressed, `W/${compressed}`])
        expect(expectedVersions(`"x", ${tag}`)).toEqual([mark]);
    },
  );

  it.each(['0100-01-01T00:00:00.000Z', '1969-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'])(
    'reads the tag of a post that changed at %s, whatever its version',
    (updatedAt) => {
      for (const version of [1, 999_999_999, 2_147_483_647])
        expect(expectedVersions(etagOf({ version, updatedAt }))).toEqual([{ version, updatedAt }]);
    },
  );

  it.each([
    ['a tag of somebody else', '"abc"'],
    ['an empty tag', '""'],
    ['version zero', '"0-abc"'],
    ['a version that no post can have', '"99999999999-abc"'],
    ['a version that PostgreSQL has no integer for', '"2147483648-abc"'],
    ['a time that no post can have', `"1-${'z'.repeat(10)}"`],
    ['a time that is none', `"1-${'z'.repeat(12)}"`],
    ['a time after the year 9999', `"1-${(Date.UTC(9999, 11, 31) + 86_400_000).toString(36)}"`],
    ['a time before the year 1', `"1-${(Date.parse('0001-01-01') - 1).toString(36)}"`],
    ['a time without digits', '"1--"'],
    ['another suffix', `"1-abc-pdf"`],
    ['a suffix that is no coding', `"1-abc-zip"`],
    ['two codings', `"1-abc-gzip-br"`],
    ['a suffix that no page has', `"1-abc-html-${'a'.repeat(17)}"`],
  ])('matches nothing with %s', (_, header) => {
    expect(expectedVersions(header)).toEqual([]);
    expect(expectedVersions(`${header}, ${etagOf(mark)}`)).toEqual([mark]);
  });

  it.each(['', ' ', ',', 'abc', '"abc', 'abc"', '"a" "b"', '*, "a"', '"a", *', "'a'", '"a\u0000"', '"a";'])(
    'refuses %j',
    (header) => {
      const refusal = expect(() => expectedVersions(header));
      refusal.toThrow(Failure);
      refusal.toThrow('invalid_request');
    },
  );
});
