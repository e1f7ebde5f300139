import { describe, expect, it } from 'vitest';
import { RetryBudget } from '../../../workers/job/retry.js';

describe('RetryBudget', () => {
  const spendAll = (budget: RetryBudget, user = 'M', model = 'm') => {
    let spent = 0;
    while (budget.spend(model, user)) spent += 1;
    return spent;
  };
  const earn = (budget: RetryBudget, times: number) => {
    for (let n = 0; n < times; n += 1) budget.earn('m', 'M');
  };

  // Ten times 0.1 is 0.9999999999999999.
  it('a budget -> starts with ten, saves up no more, and allows one for every ten attempts, none for nine', () => {
    const budget = new RetryBudget();
    earn(budget, 1000);
    expect([spendAll(budget), spendAll(new RetryBudget())]).toEqual([10, 10]);
    earn(budget, 9);
    expect(spendAll(budget)).toBe(0);
    earn(budget, 1);
    expect(spendAll(budget)).toBe(1);
  });

  it('one user who spends all -> half is left for the others', () => {
    const budget = new RetryBudget();
    earn(budget, 1000);
    spendAll(budget);
    expect(spendAll(budget, 'V')).toBe(5);
    earn(budget, 100);
    expect(spendAll(budget)).toBe(7);
    expect(budget.spend('m', 'W')).toBe(true);
  });

  it('models -> have budgets of their own, also after 1,000 names that are never retried', () => {
    const budget = new RetryBudget();
    spendAll(budget);
    for (let n = 0; n < 1000; n += 1) budget.earn(`made-up-${n}`, 'M');
    expect([spendAll(budget), spendAll(budget, 'M', 'other')]).toEqual([0, 10]);
  });
});
