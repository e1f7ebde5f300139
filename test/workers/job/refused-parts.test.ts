import { expect, it } from 'vitest';
import { RefusedParts } from '../../../workers/job/refused-parts.js';

const of = (model: string, user?: string) => ({ model, user });

it('parts of a model and a user -> concern no other model, and no other user', () => {
  const refused = new RefusedParts();
  refused.add(of('m', 'M'), ['cap', 'cache']);
  const owners = [of('m', 'M'), of('m', 'V'), of('other', 'M'), of('m')];
  expect(owners.map((owner) => refused.has(owner, 'cap'))).toEqual([true, false, false, false]);
  refused.forget(of('m', 'M'), ['cap']);
  expect(['cap', 'cache'].map((part) => refused.has(of('m', 'M'), part))).toEqual([false, true]);
});

it('10,000 other parts -> the one that was left out longest ago is forgotten', () => {
  const refused = new RefusedParts();
  for (const user of ['old', 'used']) refused.add(of('m', user), ['cap']);
  for (let n = 0; n < 9998; n += 1) refused.add(of('m', 'M'), [`seed ${n}`]);
  expect(refused.has(of('m', 'used'), 'cap')).toBe(true);
  refused.add(of('m', 'M'), ['seed -1']);
  expect(['old', 'used'].map((user) => refused.has(of('m', user), 'cap'))).toEqual([false, true]);
});
