import type { Deployment } from '../../support/deployment.js';

/** Watches for warnings and errors in the logs; a program that starts may have to wait for its store. */
export function watchWarnings(deployment: Deployment): () => unknown[] {
  const before = warnings(deployment).length;
  return () => warnings(deployment).slice(before);
}

/** In the way they were worded. */
const warnings = (deployment: Deployment): unknown[] =>
  deployment
    .logs()
    .split('\n')
    .filter((line) => /"level":[456]0/.test(line))
    .map((line) => JSON.parse(line).msg);
