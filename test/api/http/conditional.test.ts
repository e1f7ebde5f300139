import { describe, expect, it } from 'vitest';
import { isNotModified } from '../../../api/http/conditional.js';

describe('isNotModified', () => {
  const etag = '"3-mhg"';

  it.each([
    ['the tag', etag],
    ['a star', '*'],
    ['a star with spaces', ' * '],
    ['its weak form', `W/${etag}`],
    ...['gzip', 'br', 'zstd', 'deflate'].flatMap((coding) => [
      [`it with ${coding} behind it`, `"3-mhg-${coding}"`],
      [`that as a weak tag`, `W/"3-mhg-${coding}"`],
    ]),
    ['a list with it', `"a", W/"b" ,${etag}`],
    ['a list with empty elements', `, ,${etag},,`],
    ['a tag with a comma before it', `"a,b", ${etag}`],
  ])('is true for %s', (_, header) => {
    expect(isNotModified(header, etag)).toBe(true);
  });

  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['another version', '"4-mhg"'],
    ['another representation', '"3-mhg-html"'],
    ['another version with a coding', '"4-mhg-gzip"'],
    ['what is no coding', '"3-mhg-zip"'],
    ['a coding outside the quotes', '"3-mhg"-gzip'],
    ['a list that ends in neither comma nor end', `${etag} x`],
    ['the tag without quotes', etag.slice(1, -1)],
    ['half a tag', etag.slice(0, -1)],
    ['a lower-case weakness', `w/${etag}`],
    ['a tag within a tag', `"${etag}"`],
    ['tags without a comma', `${etag} ${etag}`],
    ['a star in a list', `*, ${etag}`],
  ])('is false for %s', (_, header) => {
    expect(isNotModified(header, etag)).toBe(false);
  });

  it('is true for a tag that itself ends like one with a coding', () => {
    expect(isNotModified('"abc-gzip"', '"abc-gzip"')).toBe(true);
  });
});
