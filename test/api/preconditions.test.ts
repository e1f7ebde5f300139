import { describe, expect, it } from 'vitest';
import { etagOf, expectedVersions, isKnown } from '../../api/preconditions.js';
import { Failure } from '../../shared/failures.js';

const mark = { version: 3, updatedAt: '2026-11-20T12:34:56.789Z' };
const other = { version: 12, updatedAt: '2026-11-21T00:00:00.000Z' };

describe('etagOf', () => {
  it('is a strong tag of its own for each representation', () => {
    const tags = [etagOf(mark), etagOf(mark, 'markdown'), etagOf(mark, 'html')];
    for (const tag of tags) expect(tag).toMatch(/^"[!-~]+"$/);
    expect(new Set(tags).size).toBe(3);
    expect(etagOf(mark, 'json')).toBe(etagOf(mark));
  });

  it('changes with the version and with the time', () => {
    expect(etagOf({ ...mark, version: 4 })).not.toBe(etagOf(mark));
    expect(etagOf({ ...mark, updatedAt: '2026-11-20T12:34:56.790Z' })).not.toBe(etagOf(mark));
  });
});

describe('isKnown', () => {
  const etag = etagOf(mark);

  it.each([
    ['the tag', etag],
    ['a star', '*'],
    ['a star with spaces', ' * '],
    ['its weak form', `W/${etag}`],
    ['a list with it', `"a", W/"b" ,${etag}`],
    ['a list with empty elements', `, ,${etag},,`],
    ['a tag with a comma before it', `"a,b", ${etag}`],
  ])('is true for %s', (_, header) => {
    expect(isKnown(header, etag)).toBe(true);
  });

  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['another version', etagOf(other)],
    ['another representation', etagOf(mark, 'html')],
    ['the tag without quotes', etag.slice(1, -1)],
    ['half a tag', etag.slice(0, -1)],
    ['a lower-case weakness', `w/${etag}`],
    ['a tag within a tag', `"${etag}"`],
    ['tags without a comma', `${etag} ${etag}`],
    ['a star in a list', `*, ${etag}`],
  ])('is false for %s', (_, header) => {
    expect(isKnown(header, etag)).toBe(false);
  });
});

describe('expectedVersions', () => {
  it('asks for nothing without a header, or with a star', () => {
    expect(expectedVersions(undefined)).toBeUndefined();
    expect(expectedVersions('*')).toBeUndefined();
  });

  it('reads the tag of any representation', () => {
    expect(expectedVersions(etagOf(mark))).toEqual([mark]);
    expect(expectedVersions(`${etagOf(mark, 'markdown')}, ${etagOf(other, 'html')}`)).toEqual([mark, other]);
  });

  it.each([
    ['a weak tag', `W/${etagOf(mark)}`],
    ['a tag of somebody else', '"abc"'],
    ['an empty tag', '""'],
    ['version zero', '"0-abc"'],
    ['a version that no post can have', '"99999999999-abc"'],
    ['a time that no post can have', `"1-${'z'.repeat(10)}"`],
    ['another suffix', `"1-abc-pdf"`],
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

  it('reads a header of 100,000 characters without haste', () => {
    for (const header of [
      '"a"'.padEnd(100_000),
      ','.repeat(100_000),
      `"${' '.repeat(100_000)}`,
      '" '.repeat(50_000),
    ]) {
      const startedAt = performance.now();
      try {
        expectedVersions(header);
      } catch {
        // Whether it is refused does not matter here.
      }
      expect(performance.now() - startedAt).toBeLessThan(1000);
    }
  });
});
