/** Work that is done step by step as long as there is any, never two steps at once. */
export interface Errand {
  /** Begins, unless it is under way. */
  start(): void;
  /** Resolves when nothing is left to be done. */
  done(): Promise<void>;
}

/** `step` never rejects. */
export function createErrand(isThereMore: () => boolean, step: () => Promise<void>): Errand {
  let underWay: Promise<void> | undefined;
  const run = async () => {
    while (isThereMore()) await step();
    underWay = undefined;
  };
  return {
    start: () => {
      underWay ??= run();
    },
    done: async () => underWay,
  };
}
