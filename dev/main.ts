import { parseConfig } from '../shared/config/config.js';
import { runProgram } from '../shared/runtime/program.js';

/** The program of `npm start`. The rest is loaded after the check of the configuration: that takes longer. */
await runProgram(async (environment) => {
  parseConfig(environment, 'start');
  const { start } = await import('./start.js');
  await start(environment, { isVerbose: process.argv.includes('--verbose') });
});
