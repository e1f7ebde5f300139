import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { balanced } from '../faults/support/balance.js';
import { eventually } from '../faults/support/expectations.js';
import { type JobBoard, openJobBoard } from '../faults/support/job-board.js';
import { type Balancer, createBalancer } from '../support/balancer.js';
import { type Callers, markOf, startCallers } from './support/callers.js';
import { auditContainers } from './support/container-audit.js';
import { type ContainerDeployment, openContainerDeployment } from './support/container-deployment.js';
import { docker } from './support/docker.js';
import type { ProgramContainer } from './support/program-container.js';

const everyMs = 25;
/** A worker that dies this long after the end of a call may not have stored its outcome. */
const storingMs = 2000;

let deployment: ContainerDeployment;
let jobs: JobBoard;
let balancer: Balancer;
let callers: Callers;
let apis: [ProgramContainer, ProgramContainer];
let workers: [ProgramContainer, ProgramContainer];
/** When the worker was killed, in milliseconds since the epoch. */
let killedAt = Number.NaN;
/** The exit code of a worker that was stopped for good. */
const exits = new Map<ProgramContainer, number>();

const busy = (program: ProgramContainer, metric: string) =>
  eventually(async () => expect(await program.total(metric)).toBeGreaterThan(0));
const working = (worker: ProgramContainer) => busy(worker, 'quillgate_pool_in_flight');
const hasWorked = (worker: ProgramContainer) => busy(worker, 'quillgate_jobs_total');
const asked = (api: ProgramContainer) => busy(api, 'quillgate_chat_requests_in_flight');

/** Under one load from the first test to the last; each goes on where the one before it has stopped. */
describe('two APIs and three workers of the image, under load', () => {
  beforeAll(async () => {
    deployment = await openContainerDeployment(inject('image'));
    const { startApi, startWorker, stores } = deployment;
    [apis, workers] = await Promise.all([
      Promise.all([startApi(), startApi()]),
      Promise.all([startWorker(), startWorker()]),
    ]);
    jobs = openJobBoard({ stores, programs: [] });
    await jobs.ready();
    balancer = createBalancer();
    await Promise.all(apis.map((api) => balancer.add(api.url())));
    callers = startCallers(balancer, everyMs);
  });

  afterAll(async () => {
    await callers?.stop();
    balancer?.close();
    await jobs?.close();
    await deployment?.remove();
  });

  it('give jobs to a third worker as soon as it is there', async () => {
    await Promise.all([...workers.map(hasWorked), ...apis.map(asked)]);
    await hasWorked(await deployment.startWorker());
  });

  it('go on when a worker is killed, and when it is back', async () => {
    const [worker] = workers;
    await working(worker);
    killedAt = Date.now();
    await worker.kill();
    await worker.startAgain();
    await hasWorked(worker);
  });

  it('go on when a worker is told to stop', async () => {
    const [, worker] = workers;
    await working(worker);
    exits.set(worker, await worker.stop());
  });

  it('go on when an API is told to stop, and when it is back', async () => {
    const [api] = apis;
    await asked(api);
    expect(await api.stop()).toBe(0);
    await api.startAgain();
    await balancer.add(api.url());
    await asked(api);
  });

  it('answer who asks again with a key when an API is killed', async () => {
    const [, api] = apis;
    await callers.sendKeysOnly();
    await asked(api);
    await api.kill();
    await api.startAgain();
    await balancer.add(api.url());
    await asked(api);
    expect(callers.entries.some(({ lost }) => lost > 0)).toBe(true);
  });

  it('have answered every request with its own reply', async () => {
    await callers.stop();
    for (const entry of callers.entries)
      expect(entry.answer).toMatchObject({
        status: 200,
        body: { response: expect.stringContaining(markOf(entry)) },
      });
  });

  it('give the same reply again to the same key', async () => {
    const keyed = callers.entries.filter(({ key }) => key !== undefined);
    for (const entry of keyed) {
      const { status, headers, body } = await callers.repeat({ ...entry, isAsync: false });
      expect({ status, body }).toEqual({ status: 200, body: entry.answer?.body });
      expect(headers.get('idempotency-replayed')).toBe('true');
    }
  });

  it('have called the provider once, or twice for what the killed worker was doing', async () => {
    const calls = Map.groupBy(await deployment.simulator.calls(), ({ model }) => model);
    const twice = [...calls.values()].flatMap(([first, ...others]) =>
      others.length > 0 ? (first ?? []) : [],
    );
    expect(twice.length).toBeGreaterThan(0);
    for (const { receivedAt, closedAt } of twice) {
      expect(Date.parse(receivedAt)).toBeLessThan(killedAt + storingMs);
      expect(Date.parse(closedAt ?? '')).toBeGreaterThan(killedAt - storingMs);
    }
  });

  it('have books that balance', async () => {
    const rules = { callsPerRequest: 2 };
    const { entries } = callers;
    const balance = await auditContainers({ deployment, entries, jobs, exits, rules });
    const { sent, repeated } = balance;
    process.stdout.write(`${sent} requests at two APIs and three workers, ${repeated} called twice.\n`);
    expect(balance).toMatchObject(balanced(rules));
  });

  it('leave no container and no network behind', async () => {
    await jobs.close();
    await deployment.remove();
    const filters = ['--quiet', '--filter'];
    const containers = await docker('ps', '--all', ...filters, `network=${deployment.network}`);
    const networks = await docker('network', 'ls', ...filters, `name=${deployment.network}`);
    expect({ containers, networks }).toEqual({ containers: '', networks: '' });
  });
});
