import { describe, expect, it } from 'vitest';
import { isNotModified } from '../../../api/http/conditional.js';

describe('isNotModified', () => {
  const etag = '"3-mhg"';

  it.each([
    ['the tag', etag],
    ['a star', '*'],
    ['a star with spaces', ' * '],
    ['its weak form', `W/${etag}`],
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
});
