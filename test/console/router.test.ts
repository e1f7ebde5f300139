import { describe, expect, it } from 'vitest';
import { parsePlace } from '../../console/router.ts';

describe('parsePlace', () => {
  it.each([
    ['', '', []],
    ['#/', '', []],
    ['#/pools', 'pools', []],
    ['#/pools/openai', 'pools', ['openai']],
    ['#/users/a%2Fb%20c', 'users', ['a/b c']],
    // Parts that cannot be decoded stay as they are.
    ['#/users/%zz', 'users', ['%zz']],
  ])('reads %s', (hash, view, args) => {
    expect(parsePlace(hash)).toMatchObject({ view, args });
  });

  it('reads what follows the question mark', () => {
    expect(parsePlace('#/requests?provider=openai&code=a%20b').query.get('code')).toBe('a b');
  });
});
