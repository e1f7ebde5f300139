import { expect, vi } from 'vitest';
import type { Fleet, FleetProvider } from '../../shared/fleet-contract.js';
import { createToken } from '../support/accounts.js';
import type { Deployment } from '../support/deployment.js';
import { readEvents, type StreamEvent } from '../support/event-streams.js';
import { patience } from '../support/patience.js';
import { timed } from './support/expectations.js';
import { fault } from './support/fault.js';
import { openStoreWire } from './support/store-wire.js';

/** In which what is wrong has to show. */
const shownMs = 3000;

/** A deployment as an operator sees it: one look, and the events since. */
async function openView(deployment: Deployment) {
  const { ask } = await createToken(deployment);
  const events = readEvents(await ask('/admin/events'));
  return {
    look: async () => (await (await ask()).json()) as Fleet,
    /** Reads until an event is such a one. */
    until: async (isIt: (event: StreamEvent) => boolean) => {
      for (;;) {
        const { value } = await events.next();
        if (value === undefined) throw new Error('the events have ended');
        if (isIt(value)) return;
      }
    },
    close: () => events.return(undefined),
  };
}

fault({ id: 'O1', timed: true, injected: 'kill -9 a worker while an operator watches' }, async (books) => {
  const deployment = await books.start({ workers: 1 });
  const view = await openView(deployment);
  await vi.waitFor(async () => {
    const { providers } = await view.look();
    expect(providers.map(({ state }) => state)).toEqual(Array(4).fill('serving'));
  }, patience);
  await books.kill(deployment.workers[0]);
  const silent = ({ event, data }: StreamEvent) =>
    event === 'provider' && (data as FleetProvider).provider === 'openai' && data.state === 'silent';
  const tookMs = await timed(view.until(silent));
  expect(tookMs).toBeLessThan(shownMs);
  const { queue, providers } = await view.look();
  expect(queue.status).toBe('ok');
  expect(providers[0]?.workers).toMatchObject([{ state: 'silent', silentSince: expect.any(String) }]);
  await view.close();
  return `its pools are shown as silent ${tookMs} ms later`;
});

fault(
  { id: 'O2', timed: true, injected: 'the store falls silent while an operator watches' },
  async (books) => {
    const { wire, store } = await openStoreWire(books);
    const view = await openView(await books.start({ store, workers: 1 }));
    await view.until(({ event }) => event === 'snapshot');
    wire.freeze();
    const failing = ({ event, data }: StreamEvent) => event === 'queue' && data.status === 'failing';
    const tookMs = await timed(view.until(failing));
    expect(tookMs).toBeLessThan(shownMs);
    const lookMs = await timed(
      vi.waitFor(async () => {
        const { queue, providers } = await view.look();
        expect(queue).toMatchObject({ status: 'failing', detail: expect.any(String) });
        expect(providers.map(({ state }) => state)).toEqual(Array(4).fill('unknown'));
      }, patience),
    );
    wire.thaw();
    await view.until(({ event, data }) => event === 'queue' && data.status === 'ok');
    await vi.waitFor(async () => {
      const { providers } = await view.look();
      expect(providers.map(({ state }) => state)).toEqual(Array(4).fill('serving'));
    }, patience);
    await view.close();
    return `shown ${tookMs} ms later, to whoever asks as well (${lookMs} ms until no worker counts as there); right again afterwards`;
  },
);
