import { parseConfig } from '../shared/config/config.js';
import { runProgram } from '../shared/runtime/program.js';

/** The `api` program. Loads the rest only after the configuration has been checked, because loading takes longer. */
await runProgram(async (environment) => {
  const config = parseConfig(environment, 'api');
  const { serveApi } = await import('./start-api.js');
  await serveApi(config);
});
