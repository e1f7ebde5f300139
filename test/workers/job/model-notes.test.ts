import { describe, expect, it } from 'vitest';
import { ModelNotes, RefusedHints, RetryBudget } from '../../../workers/job/model-notes.js';
import type { ModelRequest } from '../../../workers/job/model-request.js';

describe('ModelNotes', () => {
  it('names that are only looked up, or that 199 others follow -> leave the notes about the others', () => {
    const notes = new ModelNotes();
    const first = notes.of('first');
    for (let n = 0; n < 1000; n += 1) expect(notes.find(`made-up-${n}`)).toBeUndefined();
    for (let n = 0; n < 199; n += 1) notes.of(`other-${n}`);
    expect(notes.of('first')).toBe(first);
    for (let n = 0; n < 200; n += 1) notes.of(`another-${n}`);
    expect(notes.find('first')).toBeUndefined();
  });
});

describe('RefusedHints', () => {
  const request: ModelRequest = { model: 'm', turns: [], maxOutputTokens: 9, parameters: { temperature: 0 } };
  const isOmittedFor = (refused: RefusedHints, user: string) =>
    refused.omittedFrom(request, user).hints?.has('temperature') ?? false;

  it('is told of a refusal by more than a hundred users -> knows the first hundred by their names', () => {
    const refused = new RefusedHints(performance);
    for (let n = 0; n < 101; n += 1) refused.recordRefusal(request, ['temperature'], `${n}`);
    const users = ['0', '99', '100', 'another'];
    expect(users.map((user) => isOmittedFor(refused, user))).toEqual([true, true, true, true]);
    refused.refute(request, { hints: new Set(['temperature']) }, 'another');
    expect(users.map((user) => isOmittedFor(refused, user))).toEqual([true, true, false, false]);
  });

  it('has more than a hundred users whose calls failed without a part -> forgets that it was refused', () => {
    const refused = new RefusedHints(performance);
    for (const user of ['a', 'b']) refused.recordRefusal(request, ['temperature'], user);
    for (let n = 0; n < 100; n += 1) refused.forget(request, { hints: new Set(['temperature']) }, `${n}`);
    expect(isOmittedFor(refused, 'a')).toBe(true);
    refused.forget(request, { hints: new Set(['temperature']) }, '100');
    expect(isOmittedFor(refused, 'a')).toBe(false);
  });
});

describe('RetryBudget', () => {
  const spendAll = (budget: RetryBudget, user = 'M') => {
    let spent = 0;
    while (budget.spend(user)) spent += 1;
    return spent;
  };
  const earn = (budget: RetryBudget, times: number) => {
    for (let n = 0; n < times; n += 1) budget.earn('M');
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
    expect(budget.spend('W')).toBe(true);
  });
});
