import { parseConfig } from '../shared/config/config.js';
import { runProgram } from '../shared/runtime/program.js';

/** The program of `npm start`. The rest of it is loaded once the configuration is known to be good: that takes longer. */
await runProgram(async (environment) => {
  parseConfig(environment, 'start');
  const { start } = await import('./start.js');
  await start(environment, { isVerbose: process.argv.includes('--verbose') });
});
