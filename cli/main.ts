import { Command } from 'commander';
import type { Environment } from '../shared/config/config.js';
import { release, runProgram } from '../shared/runtime/program.js';

/**
 * `quillgate <command>`, for operators. The launcher starts the programs among the commands by itself. A command's
 * code is loaded when it runs: the dependencies of all would slow down each.
 */
await runProgram(async (environment) => {
  const quillgate = new Command('quillgate')
    .description(
      'A chat gateway and blogging service with a durable queue between HTTP and the model providers.',
    )
    .version(release, '-V, --version', 'print the release')
    // Otherwise a command with commands of its own would take their options.
    .enablePositionalOptions()
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
    .action(async () => (await import('./commands/migrate.js')).migrate(environment));
  quillgate
    .command('config')
    .description('check the configuration and print what is in force, without secrets')
    .option('--env-example', 'print a .env file with every variable instead')
    .action(async (options) => (await import('./commands/config.js')).printConfig(environment, options));
  quillgate
    .command('metrics')
    .description('print every metric of the API and the workers as Markdown lists')
    .action(async () => void process.stdout.write((await import('./commands/metrics.js')).renderMetrics()));
  quillgate
    .command('health')
    .description('ask the API or the worker that listens here whether it is alive')
    .option('--ready', 'ask whether it can serve instead')
    .action(async (options) => (await import('./commands/health.js')).checkHealth(environment, options));
  quillgate
    .command('status')
    .description('look at stores and workers once; ends with 1 unless every configured provider is served')
    .option(
      '--providers <list>',
      'comma list of those that must be served (default: those with credentials here, or WORKER_PROVIDERS)',
    )
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/status.js')).printStatus(environment, options));
  addUserCommands(quillgate, environment);
  addTokenCommands(quillgate, environment);
  quillgate
    .command('audit')
    .description('list the changes of users, tokens and settings with time and author, newest first')
    .option('--limit <n>', 'how many entries at most', '100')
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/audit.js')).printAudit(environment, options));
  addPoolCommands(quillgate, environment);
  addUsageCommands(quillgate, environment);
  addPostCommands(quillgate, environment);
  await quillgate.parseAsync();
});

function addUserCommands(quillgate: Command, environment: Environment): void {
  const commands = () => import('./commands/users.js');
  const users = quillgate.command('users').description('manage users, of chat and of the console');
  users
    .command('add <name>')
    .alias('create')
    .description('add a user and print the secret once')
    .option('--role <role>', 'user, or admin, who may sign in to the console (default: user)')
    .option('--json', 'print JSON: id, name and secret')
    .action(async (name, options) => (await commands()).addUser(environment, name, options));
  users
    .command('list')
    .description('list the users of the database; the one of CHAT_USERNAME need not be among them')
    .option('--json', 'print JSON')
    .action(async (options) => (await commands()).listUsers(environment, options));
  users
    .command('reset <name>')
    .description('give a user a new secret and print it once; ends their sessions')
    .option('--json', 'print JSON: id, name and secret')
    .action(async (name, options) => (await commands()).resetUser(environment, name, options));
  for (const [command, isSuspended, description] of [
    ['suspend', true, 'refuse all requests of a user, and cancel the running and stored chats'],
    ['resume', false, 'end the suspension of a user'],
  ] as const)
    users
      .command(`${command} <name>`)
      .description(description)
      .action(async (name) => (await commands()).suspendUser(environment, name, { isSuspended }));
  users
    .command('remove <name>')
    .description('remove a user and revoke the access tokens; the name may be given again, to another user')
    .action(async (name) => (await commands()).removeUser(environment, name));
}

function addTokenCommands(quillgate: Command, environment: Environment): void {
  const commands = () => import('./commands/tokens.js');
  const tokens = quillgate.command('tokens').description('manage access tokens');
  tokens
    .command('create')
    .description('make an access token and print it once')
    .option(
      '--owner <name>',
      'the user who owns it, and author of its posts (default: the first user, or blog)',
    )
    .option('--name <name>', 'what uses it, for lists and sums')
    .option(
      '--scope <scope>',
      'what it allows, repeatable: blogs:write, blogs:read, chat (for OpenAI-compatible clients), admin (for operators) (default: blogs:write)',
      (scope: string, before: string[] = []) => [...before, scope],
    )
    .option(
      '--expires <when>',
      'how long it is good: 30m, 12h, 90d, a day (2030-12-31), a time, never',
      '90d',
    )
    .option('--json', 'print JSON: id, token, owner, name, scopes, createdAt, expiresAt')
    .action(async (options) => (await commands()).createToken(environment, options));
  tokens
    .command('list')
    .description('list the access tokens, expired and revoked ones too')
    .option('--json', 'print JSON')
    .action(async (options) => (await commands()).listTokens(environment, options));
  tokens
    .command('revoke <id>')
    .description('revoke an access token; this cannot be undone')
    .action(async (id) => (await commands()).revokeToken(environment, id));
}

function addPoolCommands(quillgate: Command, environment: Environment): void {
  const commands = () => import('./commands/pool-settings.js');
  const pools = quillgate.command('pools').description('show and change the settings of the running pools');
  pools
    .command('watch')
    .description('show every worker, refreshed each second; without a terminal, one line for each change')
    .action(async () => (await import('./commands/pools.js')).watchPools(environment));
  pools
    .command('list')
    .description('list the settings, with the value in force and where it comes from')
    .option('--json', 'print JSON')
    .action(async (options) => (await commands()).listPools(environment, options));
  pools
    .command('set <provider>')
    .description('change settings on every worker; the value "default" resets one')
    .option('--concurrency <n>', 'jobs at once in each worker process')
    .option('--global-concurrency <n>', 'jobs at once over all worker processes')
    .option(
      '--rate <jobs/time>',
      'jobs that all workers together may begin in a time, such as 60/1m or 5/500ms',
    )
    .option('--breaker <state>', 'hold the breaker open or closed')
    .option('--timeout-ms <ms>', 'longest call; of a stream, the time until its first piece')
    .option('--first-token-timeout-ms <ms>', 'longest wait for the first sign of life of a stream')
    .option('--idle-timeout-ms <ms>', 'longest silence within a stream')
    .option('--fallback-after-ms <ms>', 'ask the fallback of a stream that has not begun after this time')
    .option('--model <name>', 'model for requests that name none')
    .option(
      '--models <list>',
      'more models that callers may name, separated by commas; * matches any text; or none',
    )
    .option('--fallback <list>', 'providers to ask when this one fails: provider or provider/model, or none')
    .option('--if-version <version>', 'only if the settings still have this version')
    .action(async (provider, options) => (await commands()).setPool(environment, provider, options));
  const intakes = [
    [
      'pause',
      'paused',
      'begin no jobs until resume; running ones go on, and nothing is taken out of the queue',
    ],
    ['drain', 'draining', 'refuse new chats and finish what is queued'],
    ['resume', 'open', 'end a pause or a drain'],
  ] as const;
  for (const [name, intake, description] of intakes)
    pools
      .command(`${name} <provider>`)
      .description(description)
      .action(async (provider) => (await commands()).setIntake(environment, provider, { intake }));
  pools
    .command('reset <provider>')
    .description("reset all settings to the environment's values")
    .action(async (provider) => (await commands()).resetPool(environment, provider));
}

function addUsageCommands(quillgate: Command, environment: Environment): void {
  const commands = () => import('./commands/usage.js');
  const usage = quillgate
    .command('usage')
    .description('sum what was spent at the providers')
    .option('--from <day>', 'first day, in UTC (default: 29 days before the last)')
    .option('--to <day>', 'last day (default: today)')
    .option('--by <keys>', 'one or two of day, provider, model, user, token, api, session', 'day')
    .option('--user <user>', 'only of this user, by name or id')
    .option('--token <token>', 'only of this access token, by name or id')
    .option('--provider <provider>', 'only of this provider')
    .option('--model <model>', 'only of this model')
    .option('--api <api>', 'only of this API: chat or completions')
    .option('--session <session>', 'only of this session, of 31 days at most')
    .option('--csv', 'print CSV')
    .option('--json', 'print JSON')
    .action(async (options) => (await commands()).printUsage(environment, options));
  usage
    .command('reprice')
    .description('fill the unknown costs by the prices of this release and of PRICES_FILE; known ones stay')
    .requiredOption('--from <day>', 'first day, in UTC')
    .action(async (options) => (await commands()).repriceUsage(environment, options));
  usage
    .command('forget <user>')
    .description('replace a name and its id in all requests and sums by a digest; this cannot be undone')
    .action(async (user) => (await commands()).forgetUsage(environment, user));
}

function addPostCommands(quillgate: Command, environment: Environment): void {
  const commands = () => import('./commands/posts.js');
  const posts = quillgate.command('posts').description('import and export posts');
  posts
    .command('import <folder>')
    .description('import the Markdown files of a folder, with YAML between two lines of ---; can be repeated')
    .option(
      '--force',
      'overwrite posts of other files, and posts that were changed since their files were read',
    )
    .action(async (folder, options) => (await commands()).importPosts(environment, folder, options));
  posts
    .command('export <folder>')
    .description(
      'export all posts, including drafts, as Markdown files in the form of this program, to the paths they came from',
    )
    .option(
      '--force',
      'write into a folder that is not empty; overwritten files keep nothing but their posts',
    )
    .option('--prune', 'remove and name the Markdown files in the folder that belong to no post')
    .action(async (folder, options) => (await commands()).exportPosts(environment, folder, options));
}
