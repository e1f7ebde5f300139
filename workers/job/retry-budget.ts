import { LRUCache } from 'lru-cache';
import { Tally } from '../../shared/runtime/tally.js';

const attemptsPerRetry = 10;
const maxSaved = 20 * attemptsPerRetry;
/** A model that was retried so many others ago begins with a whole budget again. */
const maxModels = 200;

/**
 * Keeps the retries of each model to a share of its traffic, so that a failing model does not get twice the calls of a
 * healthy one: one retry for every ten first attempts. It starts with 20, and saves at most 20. No user may spend more
 * than is then left for the others, so one user alone gets half. All who have no name count as one.
 */
export class RetryBudget {
  /** Budgets of models that a retry was made at: names that callers make up take no room. */
  readonly #models = new LRUCache<string, { earned: number; spent: Tally }>({ max: maxModels });

  /** To be called once for every first attempt. */
  earn(model: string, user = ''): void {
    const budget = this.#models.get(model);
    if (budget === undefined) return;
    budget.earned = Math.min(maxSaved, budget.earned + 1);
    if (budget.earned === maxSaved) budget.spent = new Tally();
    else if (budget.spent.of(user) > 0) budget.spent.add(user, -1);
  }

  /** Takes one retry out of the budget; false when there is none for this user. */
  spend(model: string, user = ''): boolean {
    const budget = this.#models.get(model) ?? { earned: maxSaved, spent: new Tally() };
    const left = budget.earned - attemptsPerRetry;
    if (left < budget.spent.of(user) + attemptsPerRetry) return false;
    budget.earned = left;
    budget.spent.add(user, attemptsPerRetry);
    this.#models.set(model, budget);
    return true;
  }
}
