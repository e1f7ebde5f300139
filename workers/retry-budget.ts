/** Keeps retries to a share of the traffic, so that a failing provider is not asked twice as often as a healthy one. */
export interface RetryBudget {
  /** To be called once for every first attempt. */
  earn(): void;
  /** Takes one retry out of the budget; false when there is none. */
  spend(): boolean;
}

/** One retry for every ten first attempts, and at most ten saved up (which is also what a new worker starts with). */
export function createRetryBudget({ share = 0.1, most = 10 } = {}): RetryBudget {
  let saved = most;
  return {
    earn: () => {
      saved = Math.min(most, saved + share);
    },
    spend: () => {
      if (saved < 1) return false;
      saved -= 1;
      return true;
    },
  };
}
