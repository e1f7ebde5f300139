import { expect, it } from 'vitest';
import type { Mark } from '../../../shared/protocol/parts.js';
import { callChain, holdOpaque, prepare } from '../../../workers/job/call-chain.js';
import { RefusedParts } from '../../../workers/job/refused-parts.js';
import { RetryBudget } from '../../../workers/job/retry.js';
import type { ProviderReply } from '../../../workers/providers/provider.js';
import { callOf, pass } from '../../support/calls.js';

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

const later = {
  model: 'm',
  turns: [{ role: 'user', content: 'a' } as const, { role: 'system', content: 'b' } as const],
};
const hinted = { model: 'm', turns: [], parameters: { presencePenalty: 0, seed: 1 } };

it.each([
  ['a hint that the provider has no field for', 'openai', hinted, 'seed'],
  ['a later system text for a server that is no one of the provider', 'anthropic', later, 'messages'],
] as const)(
  'given %s, and a caller who wants it strictly → refused by name, uncalled',
  async (_, id, request, refusedParameter) => {
    const gate = { run: () => expect.unreachable(), heldMs: () => 0 };
    const ignores = new Set(['seed', 'presencePenalty'] as const);
    const provider = { id, ignores, run: () => expect.unreachable(), close: () => {} };
    const metrics = { watchCall: () => expect.unreachable() };
    const parts = { refused: new RefusedParts(), budget: new RetryBudget() };
    const ask = callChain({ gate, provider, metrics, ...parts });
    const failure = { code: 'provider_rejected', facts: { refusedParameter } };
    const asked = async () => ask(callOf({ provider: id, isStrict: true, request }));
    await expect(asked()).rejects.toMatchObject(failure);
  },
);

it.each([
  ['its own server', { keepsSystem: true }, [], undefined],
  ['another server', {}, [], ['marked-system']],
  ['a model that refuses it', { keepsSystem: true }, ['laterSystem' as const], ['marked-system']],
])(
  'given a later system text for %s → the call knows how it was changed',
  async (_, provider, omitted, changes) => {
    const call = { ...callOf({ provider: 'anthropic', request: later }), omitted, pass };
    await prepare(call, { refused: new RefusedParts(), provider }, async () => ({}) as ProviderReply);
    expect(call.progress.changes).toEqual(changes);
  },
);
