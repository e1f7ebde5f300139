import { describe, expect, it } from 'vitest';
import { interleave, type Row } from './interleave.js';

const sides = ['baseline', 'candidate'] as const;
type Side = (typeof sides)[number];

const rowOf = (title: string, order: string[], missing?: Side): Row<Side, number> => ({
  title,
  whyNot: async (side) => (side === missing ? 'answers 404' : undefined),
  measure: async (side) => {
    order.push(`${title} ${side}`);
    return side === 'baseline' ? 10 : 20;
  },
});

describe('interleave', () => {
  it('measures all rows in each round, and turns the order of the sides from round to round', async () => {
    const order: string[] = [];
    const rows = [rowOf('a', order), rowOf('b', order)];
    await interleave({ sides, rows, rounds: 3, onRound: () => undefined });
    expect(order).toEqual([
      ...['a baseline', 'a candidate', 'b baseline', 'b candidate'],
      ...['a candidate', 'a baseline', 'b candidate', 'b baseline'],
      ...['a baseline', 'a candidate', 'b baseline', 'b candidate'],
    ]);
  });

  it('keeps the sides apart whatever their order', async () => {
    const rows = [rowOf('a', [])];
    const { rows: measured } = await interleave({ sides, rows, rounds: 2, onRound: () => undefined });
    const round = { baseline: 10, candidate: 20 };
    expect(measured).toMatchObject([{ row: { title: 'a' }, rounds: [round, round] }]);
  });

  it('leaves out what one side does not have, and says so', async () => {
    const order: string[] = [];
    const rows = [rowOf('a', order, 'baseline'), rowOf('b', order)];
    const measured = await interleave({ sides, rows, rounds: 1, onRound: () => undefined });
    expect(measured.skipped).toEqual(['a: the baseline answers 404']);
    expect(measured.rows.map(({ row }) => row.title)).toEqual(['b']);
    expect(order).toEqual(['b baseline', 'b candidate']);
  });
});
