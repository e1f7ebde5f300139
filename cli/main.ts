import { Command } from 'commander';
import { runProgram } from '../shared/program.js';
import { printConfig } from './config.js';
import { migrate } from './migrate.js';

/** `quillgate <command>`, for operators. The launcher starts the programs among the commands by itself. */
await runProgram(async (environment) => {
  const quillgate = new Command('quillgate')
    .description('A chat gateway with a durable queue between HTTP and the model providers.')
    .addHelpText(
      'after',
      `
Programs:
  start              run everything here: embedded PostgreSQL, provider simulator, API and worker
  api                run the HTTP API
  worker             run the worker pools of WORKER_PROVIDERS
  simulator          run the provider simulator alone (--port, --host)`,
    );
  quillgate
    .command('migrate')
    .description('bring the database schema up to date')
    .action(() => migrate(environment));
  quillgate
    .command('config')
    .description('check the configuration and print what is in force, without secrets')
    .option('--env-example', 'print a .env file with every variable instead')
    .option('--table', 'print the variables as a Markdown table instead')
    .action((options) => printConfig(environment, options));
  await quillgate.parseAsync();
});
