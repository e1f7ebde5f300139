import type { StartedTestContainer } from 'testcontainers';
import { readMetrics } from '../../support/metrics.js';
import { docker, tryDocker } from './docker.js';

/** A program of the image in a container, which can be ended and started again. */
export interface ProgramContainer {
  readonly id: string;
  /** Where this machine reaches it; another address after each start. */
  url(): string;
  /** The values of a metric under all its labels, added up. */
  total(metric: string): Promise<number>;
  /** Ends it without a word to it. */
  kill(): Promise<void>;
  /** Tells it to stop, waits until it has, and gives its exit code. */
  stop(): Promise<number>;
  /** Starts it again, and waits until it is ready. */
  startAgain(): Promise<void>;
  /** Everything it has logged, also before it was started again. */
  logs(): Promise<string>;
}

/** Longer than `SHUTDOWN_GRACE_MS` and the time that closing may take. */
const graceS = 35;

/** Takes hold of a container that serves this port. */
export function holdProgram(container: StartedTestContainer, port: number): ProgramContainer {
  const id = container.getId();
  const url = () => `http://${container.getHost()}:${container.getMappedPort(port)}`;
  return {
    id,
    url,
    total: async (metric) => {
      const page = await fetch(`${url()}/metrics`, { headers: { Connection: 'close' } });
      const scraped = readMetrics(await page.text());
      return [...scraped]
        .filter(([name]) => name.split('{')[0] === metric)
        .reduce((sum, [, value]) => sum + value, 0);
    },
    kill: async () => {
      await docker('kill', '--signal', 'KILL', id);
      await docker('wait', id);
    },
    stop: async () => {
      await docker('stop', '--time', String(graceS), id);
      return Number(await docker('wait', id));
    },
    startAgain: () => container.restart(),
    logs: async () => {
      const { stdout, stderr } = await tryDocker(['logs', id]);
      return stdout + stderr;
    },
  };
}
