import { PostgreSqlContainer } from '@testcontainers/postgresql';
import { RedisContainer } from '@testcontainers/redis';
import {
  GenericContainer,
  Network,
  type StartedNetwork,
  type StartedTestContainer,
  Wait,
} from 'testcontainers';
import { blogToken, password, username } from '../../support/deployment.js';
import { holdProgram, type ProgramContainer } from './program-container.js';

/** Programs of the image on a network of their own, with PostgreSQL, Redis and a simulator, each in a container. */
export interface ContainerDeployment {
  readonly network: string;
  readonly simulator: SimulatorContainer;
  /** Where this machine reaches the stores. */
  readonly stores: Record<string, string>;
  startApi(): Promise<ProgramContainer>;
  startWorker(): Promise<ProgramContainer>;
  /** Every program that was started. */
  readonly programs: readonly ProgramContainer[];
  /** Removes all containers, also those that are still starting, and the network. */
  remove(): Promise<void>;
}

const ports = { api: 3000, worker: 3001, simulator: 3002, postgres: 5432, redis: 6379 };
const database = { name: 'quillgate', user: 'quillgate', password: 'quillgate-test' };

/** The services on the programs' network. */
const environment = {
  DATABASE_URL: `postgres://${database.user}:${database.password}@postgres:${ports.postgres}/${database.name}`,
  REDIS_URL: `redis://redis:${ports.redis}`,
  SIMULATOR_URL: `http://simulator:${ports.simulator}`,
  CHAT_USERNAME: username,
  CHAT_PASSWORD: password,
  BLOG_TOKEN: blogToken,
  LOG_LEVEL: 'debug',
  // Shorter than by default, so that the jobs of a dead worker are taken over soon.
  WORKER_LOCK_MS: '5000',
  WORKER_STALLED_CHECK_MS: '1000',
};

/** Starts the stores and the simulator, and migrates. Leaves nothing behind when any of that fails. */
export async function openContainerDeployment(image: string): Promise<ContainerDeployment> {
  // Ryuk removes the containers of a killed run, but its image cannot be had everywhere.
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= 'true';
  const network = await new Network().start();
  const starting: Promise<StartedTestContainer>[] = [];
  const keep = <T extends StartedTestContainer>(container: Promise<T>): Promise<T> => {
    starting.push(container);
    return container;
  };
  let removed: Promise<void> | undefined;
  const remove = () => {
    removed ??= removeAll(starting, network);
    return removed;
  };
  try {
    const on = networkOf(network);
    const [postgres, redis, simulator] = await Promise.all([
      keep(startPostgres(on)),
      keep(startRedis(on)),
      keep(startSimulator(image, on)),
    ]);
    await keep(migrate(image, on));
    const programs: ProgramContainer[] = [];
    const run = async (program: 'api' | 'worker') => {
      const held = holdProgram(await keep(startProgram(image, program, on)), ports[program]);
      programs.push(held);
      return held;
    };
    return {
      network: network.getName(),
      simulator: watchSimulator(addressOf(simulator, ports.simulator)),
      stores: {
        DATABASE_URL: postgres.getConnectionUri(),
        REDIS_URL: redis.getConnectionUrl(),
      },
      startApi: () => run('api'),
      startWorker: () => run('worker'),
      programs,
      remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Puts a container on the network, where others find it under this name. */
type OnNetwork = <T extends GenericContainer>(container: T, name: string) => T;

const networkOf =
  (network: StartedNetwork): OnNetwork =>
  (container, name) =>
    container.withNetwork(network).withNetworkAliases(name);

const addressOf = (container: StartedTestContainer, port: number): string =>
  `http://${container.getHost()}:${container.getMappedPort(port)}`;

const startPostgres = (on: OnNetwork) =>
  on(new PostgreSqlContainer('postgres:18-alpine'), 'postgres')
    .withDatabase(database.name)
    .withUsername(database.user)
    .withPassword(database.password)
    .start();

const startRedis = (on: OnNetwork) =>
  on(new RedisContainer('redis:8-alpine'), 'redis')
    .withCommand(['redis-server', '--appendonly', 'yes'])
    .start();

const startSimulator = (image: string, on: OnNetwork) =>
  on(new GenericContainer(image), 'simulator')
    .withCommand(['simulator', '--host', '0.0.0.0', '--port', String(ports.simulator)])
    .withExposedPorts(ports.simulator)
    .withWaitStrategy(Wait.forHttp('/', ports.simulator))
    .start();

/** Rejects when the migration has not ended with 0. */
const migrate = (image: string, on: OnNetwork) =>
  on(new GenericContainer(image), 'migrate')
    .withEnvironment(environment)
    .withCommand(['migrate'])
    .withWaitStrategy(Wait.forOneShotStartup())
    .start();

const startProgram = (image: string, program: 'api' | 'worker', on: OnNetwork) =>
  on(new GenericContainer(image), program)
    .withEnvironment(environment)
    .withCommand([program])
    .withExposedPorts(ports[program])
    .withWaitStrategy(Wait.forHttp('/readyz', ports[program]))
    .start();

/** A container that could not be started is gone already. */
async function removeAll(
  starting: readonly Promise<StartedTestContainer>[],
  network: StartedNetwork,
): Promise<void> {
  const started = (await Promise.allSettled(starting)).flatMap((container) =>
    container.status === 'fulfilled' ? [container.value] : [],
  );
  await Promise.allSettled(started.map((container) => container.stop()));
  await network.stop();
}

/** A call as the simulator's control path tells of it; times are in ISO 8601. */
interface SimulatedCall {
  model: string;
  receivedAt: string;
  closedAt: string | null;
}

interface Stats {
  openSockets: number;
  providers: Record<string, { inFlight: number }>;
}

/** A simulator in a container, seen through its control path. */
interface SimulatorContainer {
  /** Every call, oldest first. */
  calls(): Promise<SimulatedCall[]>;
  /** Calls that have begun and not ended. */
  inFlight(): Promise<number>;
  /** Connections to it, but for the one that asks. */
  openSockets(): Promise<number>;
}

/** Looks at the simulator at this address. */
function watchSimulator(url: string): SimulatorContainer {
  const get = async (path: string): Promise<unknown> => {
    const answer = await fetch(`${url}/__simulator/${path}`, { headers: { Connection: 'close' } });
    return answer.json();
  };
  const stats = async () => (await get('calls/stats')) as Stats;
  return {
    calls: async () => (await get('calls')) as SimulatedCall[],
    inFlight: async () =>
      Object.values((await stats()).providers).reduce((sum, { inFlight }) => sum + inFlight, 0),
    openSockets: async () => (await stats()).openSockets - 1,
  };
}
