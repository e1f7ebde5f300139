import { describe, expect, it } from 'vitest';
import { interleave, type Row } from './interleave.js';
import type { Measured } from './statistics.js';

const measured: Measured = { perSecond: 10, errors: 0, othersBusy: 0 };

const rowOf = (title: string, order: string[], missing?: 'baseline'): Row => ({
  title,
  whyNot: async (side) => (side === missing ? 'answers 404' : undefined),
  measure: async (side) => {
    order.push(`${title} ${side}`);
    return { ...measured, perSecond: side === 'baseline' ? 10 : 20 };
  },
});

describe('interleave', () => {
  it('measures all rows in each round, and turns the order of the sides from round to round', async () => {
    const order: string[] = [];
    const rows = [rowOf('a', order), rowOf('b', order)];
    await interleave({ rows, rounds: 3, onRound: () => undefined });
    expect(order).toEqual([
      ...['a baseline', 'a candidate', 'b baseline', 'b candidate'],
      ...['a candidate', 'a baseline', 'b candidate', 'b baseline'],
      ...['a baseline', 'a candidate', 'b baseline', 'b candidate'],
    ]);
  });

  it('keeps the sides apart whatever their order', async () => {
    const { rows } = await interleave({ rows: [rowOf('a', [])], rounds: 2, onRound: () => undefined });
    expect(rows).toMatchObject([{ title: 'a', ratio: { least: 2, most: 2 }, verdict: 'faster' }]);
  });

  it('leaves out what one side does not have, and says so', async () => {
    const order: string[] = [];
    const rows = [rowOf('a', order, 'baseline'), rowOf('b', order)];
    const compared = await interleave({ rows, rounds: 1, onRound: () => undefined });
    expect(compared.skipped).toEqual(['a: the baseline answers 404']);
    expect(compared.rows.map(({ title }) => title)).toEqual(['b']);
    expect(order).toEqual(['b baseline', 'b candidate']);
  });
});
