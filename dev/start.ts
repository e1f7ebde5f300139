import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type Config,
  ConfigError,
  type Environment,
  namesSet,
  parseConfig,
} from '../shared/config/config.js';
import { hasCredentials } from '../shared/config/provider-credentials.js';
import { Lifecycle } from '../shared/runtime/lifecycle.js';
import { createLog } from '../shared/runtime/log.js';
import { StartupError } from '../shared/runtime/program.js';
import { retry } from '../shared/runtime/retry.js';
import { banner, originOf, StartReport } from './banner.js';
import { rotateLogs, spawnChild } from './child-program.js';
import { freePort } from './free-port.js';
import { takeLock } from './lock.js';
import { refuseUnusablePorts } from './ports.js';
import { startEmbeddedPostgres } from './postgres/embedded-postgres.js';
import simulatedPrices from './simulator/prices.json' with { type: 'json' };
import { showStages } from './stages.js';
import { prepareStores, type StartCredentials, startCredentials, writePrivateFile } from './stores.js';
import { type Run, SupervisedPart } from './supervised-part.js';

const launcher = fileURLToPath(new URL('../../bin/quillgate', import.meta.url));
/** How long to wait for the data folder of a start that is about to end. */
const lockWithinMs = 1000;
/** A program that does not stop this long after its own grace is killed. */
const killAfterMs = 5000;
/** Time between two looks for the first heartbeats. */
const lookEveryMs = 50;
/** Longer than PostgreSQL ever takes to stop. */
const postgresStopMs = 20_000;

/**
 * `npm start`: everything on this machine, each part embedded unless the environment names a real one. In order:
 * the data folder, free ports, PostgreSQL, migrations, the simulator, then two workers and the API just as the
 * Procfile starts them. A part that dies is started again. Stops all of it, last started first, on Ctrl-C, when one of
 * them ends during the start, or when it has died too often.
 */
export async function start(environment: Environment, options: { isVerbose: boolean }): Promise<void> {
  const config = await localConfig(environment);
  const lifecycle = new Lifecycle(createLog({ program: 'start', level: 'error' }));
  lifecycle.closeOnSignals({ graceMs: config.SHUTDOWN_GRACE_MS + 4 * killAfterMs + postgresStopMs });
  const report = reportTo(lifecycle, config);
  try {
    const facts = await startEverything(config, environment, { lifecycle, report });
    lifecycle.stopping.throwIfAborted();
    report.up();
    // Where nothing can be printed, all goes on.
    process.stdout.on('error', () => undefined).write(banner(facts, options));
  } catch (error) {
    const wasStopped = lifecycle.stopping.aborted;
    if (!wasStopped) report.failed();
    await lifecycle.close();
    if (!wasStopped) throw error;
  }
}

/** Registered before anything else, so that what it says last is true. */
function reportTo(lifecycle: Lifecycle, config: Config): StartReport {
  const stopWithinMs = config.SHUTDOWN_GRACE_MS + killAfterMs;
  const report = new StartReport({ stages: showStages(), config, stopWithinMs });
  lifecycle.stopping.addEventListener('abort', () => report.stopping());
  return lifecycle.opened('report', report, (open) => open.stopped());
}

/**
 * On one machine the API is for this machine alone, and its addresses follow its port. Ports are chosen here, so that a
 * part that is started again has the one that it had.
 */
async function localConfig(environment: Environment): Promise<Config> {
  const config = parseConfig({ ...environment, HOST: environment.HOST?.trim() || '127.0.0.1' }, 'start');
  const PORT = config.PORT || (await freePort());
  const origin = originOf({ ...config, PORT });
  return {
    ...config,
    PORT,
    WORKER_PORT: config.WORKER_PORT || (await freePort()),
    SIMULATOR_PORT: config.SIMULATOR_PORT || (await freePort()),
    CHAT_BASE_URL: environment.CHAT_BASE_URL?.trim() || origin,
    CHAT_BASE_URL_ALT: environment.CHAT_BASE_URL_ALT?.trim() || `${origin}/v1`,
    BLOG_BASE_URL: environment.BLOG_BASE_URL?.trim() || origin,
  };
}

interface StartDeps {
  lifecycle: Lifecycle;
  report: StartReport;
}

async function startEverything(config: Config, environment: Environment, { lifecycle, report }: StartDeps) {
  const dataDir = await occupyDataDir(config.DATA_DIR);
  lifecycle.opened('data folder', dataDir, (open) => open.release());
  const names = namesSet(config);
  const simulated = config.WORKER_PROVIDERS.filter((id) => !hasCredentials(names, id));
  const withSimulator = simulated.length > 0 && config.SIMULATOR_URL === undefined;
  await refuseUnusablePorts(config, { withSimulator });
  const credentials = startCredentials(config);
  const { postgres, databaseUrl } = await prepareDatabase(config, { lifecycle, report });

  const logs = ['api', 'worker', 'worker-2', 'simulator'].map((name) => join(dataDir.logs, `${name}.log`));
  const rotation = rotateLogs([...logs, join(config.DATA_DIR, 'postgres.log')]);
  lifecycle.opened('log rotation', rotation, (open) => open.stop());
  report.begin(`Starting the API${withSimulator ? ', two workers and the simulator' : ' and two workers'}`);
  const run = programRunner(environment, dataDir.logs, { graceMs: config.SHUTDOWN_GRACE_MS, lifecycle });
  const simulator = withSimulator
    ? run('simulator', { args: ['simulator', '--port', `${config.SIMULATOR_PORT}`] })
    : undefined;
  await simulator?.run.ready;
  const simulatorUrl = simulator ? `http://127.0.0.1:${config.SIMULATOR_PORT}` : config.SIMULATOR_URL;
  const variables = variablesOf({ ...config, DATABASE_URL: databaseUrl }, credentials);
  // Everything runs here, and the banner says who is simulated. The API shows operators which model that is.
  const played = {
    ...variables,
    SIMULATOR_URL: simulatorUrl,
    REAL_PROVIDERS: '',
    PRICES_FILE: config.PRICES_FILE ?? (simulator && writePrices(config.DATA_DIR)),
    // Claude Code asks for Claude, which nobody plays under its name.
    MODEL_ALIASES:
      environment.MODEL_ALIASES ??
      (simulated.includes('anthropic') ? 'claude-*=anthropic/sim-script' : undefined),
  };
  const workerPorts = [config.WORKER_PORT, await freePort()];
  const workers = workerPorts.map((port, index) =>
    run(index === 0 ? 'worker' : `worker-${index + 1}`, {
      args: ['worker'],
      variables: { ...played, WORKER_PORT: `${port}` },
    }),
  );
  const api = run('api', { args: ['api'], variables: played });
  const parts = [api, ...workers, simulator ?? [], postgres ?? []].flat();
  // The programs would wait for a database that has died while they start.
  const failing = Promise.race(parts.map((part) => part.run.ended)).then((reason) =>
    Promise.reject(new StartupError(reason)),
  );
  const ready = Promise.all([api, ...workers].map((part) => part.run.ready));
  await Promise.race([ready.then(() => untilHeard(config, lifecycle.stopping)), failing]);
  stopWhenOneIsGivenUp(parts, lifecycle);

  return { config, workerPorts, simulatorUrl, logDir: dataDir.logs, simulated, ...credentials };
}

/**
 * Creates the data folder if it is missing and locks it against other starts, because the one that stops first would
 * stop the other's PostgreSQL too. The lock ends with the process, even when it is killed. Throws `ConfigError`.
 */
async function occupyDataDir(path: string): Promise<{ logs: string; release(): void }> {
  const logs = join(path, 'logs');
  try {
    mkdirSync(logs, { recursive: true });
    // They name users and chats. The folder above stays open: another account may own the database in it.
    chmodSync(logs, 0o700);
    const lock = await takeLock(join(path, 'start.lock'), lockWithinMs);
    if (lock) return { logs, release: () => lock.close() };
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'failed';
    throw new ConfigError([`DATA_DIR: cannot write in ${path} (${code})`]);
  }
  throw new ConfigError([
    `DATA_DIR: npm start runs in ${path} already; stop it, or set another folder and ports`,
  ]);
}

/** Starts PostgreSQL unless the environment names one, and brings the database and the queue's store up to date. */
async function prepareDatabase(config: Config, { lifecycle, report }: StartDeps) {
  if (!config.DATABASE_URL) report.begin(`Preparing PostgreSQL, with its data in ${config.DATA_DIR}/`);
  const postgres = config.DATABASE_URL ? undefined : await ownPostgres(config.DATA_DIR, lifecycle);
  const databaseUrl = config.DATABASE_URL ?? postgres?.url ?? '';
  report.begin('Bringing the database up to date');
  await prepareStores(config, databaseUrl);
  // For the command line, which could not find the embedded PostgreSQL: its port changes at every start.
  writePrivateFile(join(config.DATA_DIR, 'database-url'), `${databaseUrl}\n`);
  return { postgres: postgres?.part, databaseUrl };
}

/** Writes the prices of the simulator's models down for the API. */
function writePrices(dataDir: string): string {
  const path = join(dataDir, 'simulated-prices.json');
  writePrivateFile(path, `${JSON.stringify(simulatedPrices)}\n`);
  return path;
}

/** The variables that the API and the worker do not take from the environment. */
const variablesOf = (
  { HOST, PORT, DATABASE_URL, CHAT_BASE_URL, CHAT_BASE_URL_ALT, BLOG_BASE_URL }: Config,
  { credentials, admin, tokens }: StartCredentials,
): Environment => ({
  HOST,
  PORT: String(PORT),
  DATABASE_URL,
  CHAT_BASE_URL,
  CHAT_BASE_URL_ALT,
  BLOG_BASE_URL,
  CHAT_USERNAME: credentials.username,
  CHAT_PASSWORD: credentials.password,
  ADMIN_USERNAME: admin.username,
  ADMIN_PASSWORD: admin.password,
  BLOG_TOKEN: tokens.blog.token,
  CHAT_TOKEN: tokens.chat.token,
});

interface ProgramOptions {
  args: string[];
  variables?: Environment;
}

/**
 * Starts the programs beside this one. They stop one after another; what one of them leaves of the grace is all that
 * the next one gets.
 */
function programRunner(
  environment: Environment,
  logDir: string,
  { graceMs, lifecycle }: { graceMs: number; lifecycle: Lifecycle },
) {
  let until = Number.POSITIVE_INFINITY;
  lifecycle.stopping.addEventListener('abort', () => {
    until = Date.now() + graceMs;
  });
  const graceLeftMs = () => Math.max(0, until - Date.now());
  return (name: string, { args, variables = {} }: ProgramOptions): SupervisedPart => {
    lifecycle.stopping.throwIfAborted();
    const start = (): Run => {
      const child = spawnChild({
        name,
        command: launcher,
        args,
        environment: { ...environment, ...variables },
        logFile: join(logDir, `${name}.log`),
      });
      return { ...child, stop: () => child.stop({ graceMs: graceLeftMs() + killAfterMs }) };
    };
    const part = new SupervisedPart({ name, start, stopping: lifecycle.stopping, say });
    return lifecycle.opened(name, part, (open) => open.stop());
  };
}

/** PostgreSQL, on the same port whenever it is started again, and its URL. */
async function ownPostgres(dataDir: string, lifecycle: Lifecycle) {
  let url = '';
  const start = (): Run => {
    const starting = startEmbeddedPostgres({ dataDir, port: url ? Number(new URL(url).port) : undefined });
    const ready = starting.then((postgres) => {
      url = postgres.url;
    });
    const ended = starting.then(
      (postgres) => postgres.ended,
      (cause: Error) => cause.message.replace(/\.$/, ''),
    );
    return { ready, ended, stop: async () => (await starting.catch(() => undefined))?.stop() };
  };
  const part = new SupervisedPart({ name: 'PostgreSQL', start, stopping: lifecycle.stopping, say });
  // Registered before it runs: a signal in the middle of its start must end it, too.
  lifecycle.opened('postgres', part, (open) => open.stop());
  await part.run.ready.catch((cause: Error) => {
    throw new StartupError(cause.message, { cause });
  });
  lifecycle.stopping.throwIfAborted();
  return { part, url };
}

/** Resolves once the API has heard of every pool: before that it lists none of the pool's models. */
const untilHeard = (config: Config, signal: AbortSignal): Promise<void> =>
  retry(
    async () => {
      const answer = await fetch(originOf(config), { headers: { Accept: 'application/json' } });
      const { providers } = (await answer.json()) as { providers: Record<string, string> };
      const isHeard = (id: string) => ['real', 'simulated'].includes(providers[id] ?? '');
      if (!config.WORKER_PROVIDERS.every(isHeard)) throw new Error('not every pool is heard');
    },
    { pauseMs: lookEveryMs, signal },
  );

function stopWhenOneIsGivenUp(parts: SupervisedPart[], lifecycle: Lifecycle): void {
  void Promise.race(parts.map((part) => part.keepRunning())).then(async (reason) => {
    if (lifecycle.stopping.aborted) return;
    say(reason);
    await lifecycle.close();
    process.exit(1);
  });
}

const say = (line: string): void => void process.stderr.write(`${line}\n`);
