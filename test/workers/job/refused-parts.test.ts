import { expect, it } from 'vitest';
import { RefusedParts } from '../../../workers/job/refused-parts.js';

it('parts of a model and a user -> concern no other model, and no other user', () => {
  const refused = new RefusedParts();
  refused.add('m', 'M', 'cap');
  refused.add('m', 'M', 'cache');
  const pairs = [['m', 'M'], ['m', 'V'], ['other', 'M'], ['m']] as const;
  expect(pairs.map(([model, user]) => [...refused.of(model, user)])).toEqual([['cap', 'cache'], [], [], []]);
  refused.forget('m', 'M');
  expect(refused.of('m', 'M').size).toBe(0);
});

it('2,000 other pairs -> the one that was asked for longest ago is forgotten', () => {
  const refused = new RefusedParts();
  for (const user of ['old', 'used']) refused.add('m', user, 'cap');
  for (let n = 0; n < 1998; n += 1) refused.add(`model-${n}`, 'M', 'cap');
  refused.of('m', 'used');
  refused.add('last', 'M', 'cap');
  expect([refused.of('m', 'old').size, refused.of('m', 'used').size]).toEqual([0, 1]);
});
