import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Config, ConfigError, type Environment, parseConfig } from '../shared/config.js';
import { Lifecycle } from '../shared/lifecycle.js';
import { createLog } from '../shared/log.js';
import { migrateQueueStore } from '../shared/queue.js';
import { banner } from './banner.js';
import { type ChildProgram, startChild } from './child-program.js';
import { chatCredentials } from './credentials.js';
import { takenPorts } from './ports.js';
import { startEmbeddedPostgres } from './postgres/embedded-postgres.js';
import { simulatedProviders, simulatorEnvironment } from './simulated-providers.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** The programs of a killed start notice within this time that it is gone. */
const portPatienceMs = 8000;
/** A program that does not stop this long after its own grace is killed. */
const killAfterMs = 5000;

/**
 * `npm start`: everything on this machine, each part embedded unless the environment names a real one. In order:
 * free ports, PostgreSQL, migrations, the simulator, then the API and the worker just as the Procfile starts them.
 * Stops all of it, last started first, on Ctrl-C or when one of them ends.
 */
export async function start(environment: Environment): Promise<void> {
  const config = parseConfig(withLocalDefaults(environment), 'migrate');
  const lifecycle = new Lifecycle(createLog({ program: 'start', level: 'silent' }));
  lifecycle.closeOnSignals({ graceMs: config.SHUTDOWN_GRACE_MS + 2 * killAfterMs });
  try {
    await startEverything(config, environment, lifecycle);
  } catch (error) {
    await lifecycle.close();
    throw error;
  }
}

async function startEverything(
  config: Config,
  environment: Environment,
  lifecycle: Lifecycle,
): Promise<void> {
  const logDir = join(config.DATA_DIR, 'logs');
  mkdirSync(logDir, { recursive: true });
  await refuseTakenPorts(config);
  const credentials = chatCredentials(environment, config.DATA_DIR);
  const databaseUrl = config.DATABASE_URL ?? (await ownPostgres(config.DATA_DIR, lifecycle));
  await migrateQueueStore({ ...config, DATABASE_URL: databaseUrl });

  const run = async (name: string, variables: Environment = {}, args = [name]): Promise<ChildProgram> => {
    const command = join(root, 'bin', 'quillgate');
    const logFile = join(logDir, `${name}.log`);
    const child = await startChild({
      name,
      command,
      args,
      environment: { ...environment, ...variables },
      logFile,
    });
    lifecycle.opened(name, child, (open) => open.stop({ graceMs: config.SHUTDOWN_GRACE_MS + killAfterMs }));
    return child;
  };
  const simulated = simulatedProviders(config);
  const simulator =
    simulated.length > 0
      ? await run('simulator', {}, ['simulator', '--port', `${config.SIMULATOR_PORT}`])
      : undefined;
  const simulatorUrl = simulator && `http://127.0.0.1:${simulator.port}`;
  const common = {
    HOST: config.HOST,
    DATABASE_URL: databaseUrl,
    CHAT_USERNAME: credentials.username,
    CHAT_PASSWORD: credentials.password,
    CHAT_BASE_URL: config.CHAT_BASE_URL,
    CHAT_BASE_URL_ALT: config.CHAT_BASE_URL_ALT,
  };
  const [api, worker] = await Promise.all([
    run('api', common),
    run('worker', { ...common, ...(simulatorUrl && simulatorEnvironment(simulated, simulatorUrl)) }),
  ]);
  await Promise.all([api.ready, worker.ready]);
  stopWhenOneEnds([api, worker, ...(simulator ? [simulator] : [])], lifecycle);

  const origin = `http://localhost:${api.port}`;
  process.stdout.write(
    banner({
      chatUrl: `${config.CHAT_BASE_URL}/chat`,
      chatUrlAlt: `${config.CHAT_BASE_URL_ALT}/chat`,
      origin,
      workerPort: worker.port,
      simulatorUrl,
      simulated,
      credentials,
      queue: config.REDIS_URL ? 'Redis (REDIS_URL)' : 'in PostgreSQL; set REDIS_URL to use Redis',
      database: config.DATABASE_URL
        ? 'PostgreSQL (DATABASE_URL)'
        : `embedded PostgreSQL, data in ${config.DATA_DIR}/`,
      logDir,
    }),
  );
}

/** On one machine the API is for this machine alone, and its addresses follow its port. */
function withLocalDefaults(environment: Environment): Environment {
  const origin = `http://localhost:${environment.PORT || 3000}`;
  return {
    ...environment,
    HOST: environment.HOST || '127.0.0.1',
    CHAT_BASE_URL: environment.CHAT_BASE_URL || origin,
    CHAT_BASE_URL_ALT: environment.CHAT_BASE_URL_ALT || `${origin}/v1`,
  };
}

async function refuseTakenPorts({ PORT, WORKER_PORT, SIMULATOR_PORT }: Config): Promise<void> {
  const taken = await takenPorts({ PORT, WORKER_PORT, SIMULATOR_PORT }, portPatienceMs);
  if (taken.length > 0) {
    throw new ConfigError(
      taken.map((port) => `${port}: something else listens there; stop it or set another port`),
    );
  }
}

async function ownPostgres(dataDir: string, lifecycle: Lifecycle): Promise<string> {
  const postgres = await startEmbeddedPostgres({ dataDir });
  lifecycle.opened('postgres', postgres, (open) => open.stop());
  return postgres.url;
}

function stopWhenOneEnds(children: ChildProgram[], lifecycle: Lifecycle): void {
  void Promise.race(children.map(({ ended }) => ended)).then(async (reason) => {
    if (lifecycle.stopping.aborted) return;
    process.stderr.write(`${reason}\n`);
    await lifecycle.close();
    process.exit(1);
  });
}
