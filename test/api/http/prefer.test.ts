import { describe, expect, it } from 'vitest';
import { preferenceOf, readWait } from '../../../api/http/prefer.js';

describe('preferenceOf', () => {
  it.each([
    [undefined, undefined],
    ['', undefined],
    ['other', undefined],
    ['waiting=1', undefined],
    ['handling="a, wait=5"', undefined],
    ['handling="a\\", wait=5"', undefined],
    ['wait', ''],
    ['wait=""', ''],
    ['wait=5', '5'],
    [' WAIT = 5 ;x="a;b", other', '5'],
    ['wait="5"', '5'],
    ['wait="\\5"', '5'],
    ['respond-async, wait=5', '5'],
    ['handling="a, wait=6", wait=5', '5'],
    ['wait=5, wait=9', '5'],
    ['wait=a=b', 'a=b'],
    ['wait="5', '"5'],
    [',,;=, wait=5', '5'],
  ])('finds in %j the value %j', (header, value) => {
    expect(preferenceOf(header, 'wait')).toBe(value);
  });
});

describe('readWait', () => {
  it.each([
    ['wait=1', 1],
    ['wait=300', 300],
    ['wait=007', 7],
    ['respond-async', undefined],
    [undefined, undefined],
  ])('reads %j as %j', (header, seconds) => {
    expect(readWait(header, 300)).toBe(seconds);
  });

  it.each(['wait', 'wait=0', 'wait=301', 'wait=-1', 'wait=1.5', 'wait=1e2', 'wait=5s', 'wait=٣'])(
    'refuses %s',
    (header) => {
      const errors = [{ pointer: 'Prefer', detail: 'wait must be a whole number of seconds from 1 to 300' }];
      expect(() => readWait(header, 300)).toThrow(
        expect.objectContaining({ code: 'invalid_request', facts: { errors } }),
      );
    },
  );
});
