import { parseConfig } from '../shared/config.js';
import { runProgram } from '../shared/program.js';

/** The `worker` program. The rest of it is loaded once the configuration is known to be good: loading takes longer. */
await runProgram(async (environment) => {
  const config = parseConfig(environment, 'worker');
  const { work } = await import('./work.js');
  await work(config);
});
