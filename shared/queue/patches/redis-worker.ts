/*
 * Patch of bullmq 6.7.0: `moveToActive`, `maximumBlockTimeout` and the backend of `Worker`.
 * Gives: correctness and speed. A dead connection is noticed within six seconds; a pool of 200 fills in a few round
 * trips, not in 200 (decision 33).
 * Until: BullMQ takes several jobs in one round trip, and its longest blocking read can be set.
 */
import { type Job, Worker } from 'bullmq';
import { moveToActive } from 'bullmq/dist/esm/scripts/moveToActive-11.js';
import { maxBlockMs, type RedisConnection } from '../stores/redis-connection.js';
import { mainLoopOf } from './main-loop.js';

/** Jobs that are taken in one command, so that none holds up the store for more than a millisecond or two. */
const maxTaken = 64;

/**
 * BullMQ's script takes one job. This one runs it for each of the options that follow its first two arguments, until it
 * finds none. When it has emptied the queue, it removes the marker that the last taken job left to wake another worker,
 * which would find nothing; the next job that is added leaves its own. A job that cannot be taken must not strand those
 * taken before it.
 */
const takeScript = `
  local function take(KEYS, ARGV)
    ${moveToActive.content}
  end
  local taken = {}
  for n = 3, #ARGV do
    local isTaken, found = pcall(take, KEYS, { ARGV[1], ARGV[2], ARGV[n] })
    if not isTaken then
      if n == 3 then error(found) end
      found = { 0, 0, 0, 0 }
    end
    taken[#taken + 1] = found
    if found[1] == 0 then
      if redis.call('LLEN', KEYS[1]) + redis.call('ZCARD', KEYS[3]) == 0 then redis.call('ZREM', KEYS[11], '0') end
      break
    end
  end
  return taken`;

/** Defines on the connection the command that the workers on it need. */
export function defineTakeJobs(redis: RedisConnection): void {
  redis.defineCommand('takeJobs', { numberOfKeys: moveToActive.keys, lua: takeScript });
}

/**
 * Takes in one round trip as many jobs as it has room for and found lately, and one more; while it finds as many as it
 * asks for, twice as many (decision 33). The connection must have been prepared by `defineTakeJobs`.
 */
export class RedisWorker extends Worker {
  #wanted = minTaken;

  /** While jobs are delayed, BullMQ's own worker would block for up to ten seconds on a connection that may be dead. */
  override get maximumBlockTimeout(): number {
    return maxBlockMs / 1000;
  }

  protected override createBackend(): void {
    super.createBackend();
    takeTogether(this.backend);
  }

  /** The main loop gets these jobs like the successors of ended jobs, and errors like those of its fetch. */
  protected override async moveToActive(token: string, name?: string): Promise<Job> {
    const { mainLoopQueue: loop } = mainLoopOf(this);
    const room = loop ? this.concurrency - loop.numTotal() : 1;
    const count = Math.max(1, Math.min(this.#wanted, room));
    if (count === 1) return await super.moveToActive(token, name);
    const fetches = Array.from({ length: count }, (_, n) => super.moveToActive(`${token}:${n}`, name));
    for (const fetch of fetches) loop?.add(fetch.catch(() => none));
    const found = (await Promise.all(fetches)).filter(Boolean).length;
    const wanted = found === count ? Math.max(this.#wanted, 2 * count) : Math.max(minTaken, found + 1);
    this.#wanted = Math.min(wanted, maxTaken);
    return none;
  }
}

/** BullMQ's type of a fetch has no name for this. */
const none = undefined as unknown as Job;

/** With one more than there is, a worker learns in the same trip that it has emptied the queue. */
const minTaken = 2;

interface Take {
  options: unknown;
  taken: PromiseWithResolvers<unknown>;
}

/** Makes the backend send all fetches of one turn of the event loop as one `takeJobs`. */
function takeTogether(backend: RedisWorker['backend']): void {
  const execute = backend.execCommand.bind(backend);
  let takes: Take[] = [];
  const send = async (client: Client, args: readonly unknown[]) => {
    const sent = takes;
    takes = [];
    try {
      const found = await client.runCommand('takeJobs', [...args, ...sent.map(({ options }) => options)]);
      for (const [n, { taken }] of sent.entries()) taken.resolve(found[n] ?? found.at(-1));
    } catch (error) {
      for (const { taken } of sent) taken.reject(error);
    }
  };
  backend.execCommand = (client: Client, command, args) => {
    if (command !== moveToActive.name) return execute(client, command, args);
    const taken = Promise.withResolvers<unknown>();
    if (takes.push({ options: args.at(-1), taken }) === 1)
      queueMicrotask(() => void send(client, args.slice(0, -1)));
    return taken.promise;
  };
}

type Client = Parameters<RedisWorker['backend']['execCommand']>[0];
