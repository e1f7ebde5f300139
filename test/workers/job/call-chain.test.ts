import { expect, it } from 'vitest';
import type { Mark } from '../../../shared/protocol/parts.js';
import { holdOpaque } from '../../../workers/job/call-chain.js';

const source = { provider: 'anthropic', model: 'm' } as const;
const opaque = (at: number): Mark => ({ kind: 'opaque', at, length: 2, ...source, role: 'block' });
const call: Mark = { kind: 'call', at: 4, id: 'c', name: 'f' };

it.each<[string, Mark | undefined]>([
  ['a text', undefined],
  ['a text behind them', { kind: 'text', at: 4 }],
  ['a call', call],
])('given opaque pieces before %s → they are held back for it, and later ones are not', (_, mark) => {
  const seen: unknown[] = [];
  const hand = holdOpaque((...piece) => void seen.push(piece));
  hand('{}', opaque(0));
  hand('{}', opaque(2));
  expect(seen).toEqual([]);
  hand('a', mark);
  hand('{}', opaque(5));
  hand('b');
  expect(seen).toEqual([
    ['{}', opaque(0)],
    ['{}', opaque(2)],
    ['a', mark],
    ['{}', opaque(5)],
    ['b', undefined],
  ]);
});
