import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Names the file that says how the run's build has ended. */
export const buildVariable = 'TESTED_BUILD';

const lookMs = 50;

/** vitest's setup of the files that start programs: waits for the build, and throws when it has failed. */
const outcome = process.env[buildVariable];
if (outcome !== undefined) {
  while (!existsSync(outcome)) await delay(lookMs);
  if (readFileSync(outcome, 'utf8') === 'failed') throw new Error('the build failed, as it says above');
}
