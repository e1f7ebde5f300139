import { expect } from 'vitest';
import type { Fleet, FleetProvider } from '../../shared/contracts/fleet-contract.js';
import { createToken } from '../support/accounts.js';
import { quillgate } from '../support/command-line.js';
import { readEvents, type StreamEvent } from '../support/event-streams.js';
import { hearPools } from '../support/opened-store.js';
import { profiles } from '../support/profiles.js';
import type { StoreKind } from '../support/stores.js';
import type { Books } from './support/books.js';
import { catalogue } from './support/catalogue.js';
import { eventually, expectCodes, untilWell } from './support/expectations.js';
import { type OutageStore, startOutageStore } from './support/outage.js';

let outage: OutageStore;
const store = async (kind: StoreKind) => (outage = await startOutageStore(kind));

/** A deployment as an operator sees it: one look, and the events since; ends with the case. */
async function openView({ deployment, release }: Books) {
  const { ask } = await createToken(deployment);
  const events = readEvents(await ask('/admin/events'));
  release(() => void events.return(undefined));
  const look = async () => (await (await ask()).json()) as Fleet;
  return {
    look,
    /** Reads until an event is such a one. */
    until: async (isIt: (event: StreamEvent) => boolean) => {
      for (;;) {
        const { value } = await events.next();
        if (value === undefined) throw new Error('the events have ended');
        if (isIt(value)) return;
      }
    },
    untilAllAre: (wanted: FleetProvider['state']) =>
      eventually(async () => {
        const { providers } = await look();
        expect(providers.map(({ state }) => state)).toEqual(Array(4).fill(wanted));
      }),
  };
}

catalogue({ variables: profiles.narrow, store }, (add) => {
  add('O1 a worker killed while an operator watches → its pools are shown as silent', {}, async (books) => {
    const view = await openView(books);
    await view.untilAllAre('serving');
    await books.kill(books.deployment.workers[0]);
    await view.until(
      ({ event, data }) => event === 'provider' && data.provider === 'openai' && data.state === 'silent',
    );
    const { queue, providers } = await view.look();
    expect(queue.status).toBe('ok');
    expect(providers[0]?.workers).toMatchObject([{ state: 'silent', silentSince: expect.any(String) }]);
  });

  add(
    'O2 the store falls silent while an operator watches → it is shown as failing, and then as well',
    {},
    async (books) => {
      const view = await openView(books);
      await view.until(({ event }) => event === 'snapshot');
      outage.freeze();
      await view.until(({ event, data }) => event === 'queue' && data.status === 'failing');
      await view.untilAllAre('unknown');
      expect((await view.look()).queue).toMatchObject({ status: 'failing', detail: expect.any(String) });
      outage.thaw();
      await view.until(({ event, data }) => event === 'queue' && data.status === 'ok');
      await view.untilAllAre('serving');
    },
  );

  const queued = 20;
  const model = 'sim-gate-0@F5';

  add(
    'F5 a worker frozen until messages to it are lost, meanwhile a pause → it takes nothing until they are resumed',
    {},
    async (books) => {
      const { simulator, stores, workers, startWorker } = books.deployment;
      const [frozen] = workers;
      if (frozen === undefined) throw new TypeError('no worker');
      await startWorker();
      const { relay, pools, close } = await hearPools(stores);
      books.release(close);
      const nodes = async () => (await relay.nodes()).length;
      await eventually(async () => expect(await nodes()).toBe(4));
      process.kill(frozen.pid, 'SIGSTOP');
      expect(await quillgate(['pools', 'pause', 'openai'], stores)).toMatchObject({ code: 0 });
      const headers = { Prefer: 'respond-async' };
      const parked = Array.from({ length: queued }, () => books.ask({ model, headers }));
      expectCodes(await Promise.all(parked.map(({ reply }) => reply)), ['202']);
      await eventually(async () => expect(await nodes()).toBe(3));
      process.kill(frozen.pid, 'SIGCONT');
      await eventually(() => expect(pools().map(({ state }) => state)).toEqual(['paused', 'paused']));
      // A job that it had by then goes on; both workers serve this provider.
      await untilWell(books, { provider: 'bedrock' });
      const begun = simulator.calls.list({ model }).length;
      expect(begun).toBeLessThanOrEqual(1);
      simulator.open(model);
      await eventually(async () => expect(await books.jobs.unfinished()).toBe(queued - begun));
      await untilWell(books, { provider: 'bedrock' });
      expect(simulator.calls.list({ model })).toHaveLength(begun);
      expect(await quillgate(['pools', 'resume', 'openai'], stores)).toMatchObject({ code: 0 });
      await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
    },
  );
});
