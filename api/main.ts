import { parseConfig } from '../shared/config/config.js';
import { runProgram } from '../shared/runtime/program.js';

/** The `api` program. The rest of it is loaded once the configuration is known to be good: loading takes longer. */
await runProgram(async (environment) => {
  const config = parseConfig(environment, 'api');
  const { serveApi } = await import('./start-api.js');
  await serveApi(config);
});
