import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { ofEveryPool, profiles } from '../support/profiles.js';
import { startRedisProcess } from '../support/redis-process.js';
import type { StoreKind } from '../support/stores.js';
import type { Books } from './support/books.js';
import { bothStores, catalogue } from './support/catalogue.js';
import { openConnectionKiller } from './support/connection-killer.js';
import { eventually, expectCodes } from './support/expectations.js';
import { startOwnPostgres } from './support/own-postgres.js';
import { type Asked, providerOf } from './support/requests.js';

/** Of the catalogue that runs. */
let postgres: Awaited<ReturnType<typeof startOwnPostgres>>;

/** A PostgreSQL that can be killed, and where the queue is in Redis one whose connections no other file has. */
async function store(kind: StoreKind) {
  postgres = await startOwnPostgres();
  if (kind === 'postgres') return postgres;
  const { port, stop } = await startRedisProcess();
  const stopBoth = async () => void (await Promise.all([stop(), postgres.stop()]));
  return { kind, url: `redis://127.0.0.1:${port}`, databaseUrl: postgres.url, stop: stopBoth };
}

interface Call {
  url: string;
  provider: ProviderId;
}
type Sent = Pick<Asked, 'leave'>;
type Ask = (books: Books, call: Call, n: number) => Sent;

/** All kinds of chats. Each has a model of its own, so that none is refused for another's failures. */
const kinds: readonly [Ask, ...Ask[]] = [
  (books, call) => books.ask({ ...call, model: 'sim-latency-300' }),
  (books, call) => books.stream({ ...call, model: 'sim-stream-30-20' }),
  (books, call, n) => {
    const headers = { 'X-LLM-Fallback': `anthropic/sim-latency-200@U1.fallback.${n}` };
    return books.ask({ ...call, model: `sim-status-500@U1.fallback.${n}`, headers });
  },
  (books, call) => books.ask({ ...call, model: 'sim-latency-100.status-500.first-1' }),
  (books, call) => books.complete({ ...call, model: 'sim-no-hints', fields: { temperature: 0.5 } }),
  (books, call) => books.ask({ ...call, model: 'sim-retry-after-1.first-1' }),
  (books, call) => books.ask({ ...call, model: 'sim-latency-200.no-usage' }),
  (books, call) => leaveSoon(books.ask({ ...call, model: 'sim-hang', headers: late })),
  (books, call) => leaveSoon(books.stream({ ...call, model: 'sim-gate-20', headers: late })),
];

/** A call ends with its deadline if no API process is left to hear that its caller has gone. */
const late = { Prefer: 'wait=10' };

function leaveSoon(sent: Sent): Sent {
  setTimeout(sent.leave, 500);
  return sent;
}

const slots = 5;
const workers = 2;
const rounds = 2;
const chatsPerFault = 100;
const everyMs = 25;
const awayS = 20;
/** All slots of four providers, of a killed worker and of each whose connections end, by the killer or PostgreSQL. */
const lost = rounds * 4 * slots * (1 + 2 * workers);

catalogue(
  { variables: { ...profiles.short, ...ofEveryPool('CONCURRENCY', slots) }, workers, store },
  (add) => {
    add(
      `U1 ${rounds * 5 * chatsPerFault} chats of all kinds, and all is killed in turn → each call is in the ledger once`,
      // A first call and its retry; where a part is refused, both once more; and all of that in a second start.
      { callsPerRequest: 8, callsPerStart: 4, lost, stores: bothStores },
      async (books) => {
        const { deployment, kill } = books;
        const apis = [{ child: deployment.api, url: deployment.url }, await deployment.startApi()];
        const sent: (Sent & { url: string })[] = [];
        const send = async () => {
          for (let left = chatsPerFault; left > 0; left -= 1) {
            await eventually(() => expect(apis).not.toEqual([]));
            const n = sent.length;
            const url = apis[n % apis.length]?.url ?? '';
            const ask = kinds[n % kinds.length] ?? kinds[0];
            sent.push({ url, leave: ask(books, { url, provider: providerOf(n) }, n).leave });
            await delay(everyMs);
          }
        };
        /** Its callers hang up as it dies. */
        const killApi = async () => {
          const dying = apis.shift();
          const killed = kill(dying?.child);
          for (const one of sent) if (one.url === dying?.url) one.leave();
          await killed;
        };
        const faults = [
          async () => {
            await kill(deployment.workers[0]);
            await deployment.startWorker();
          },
          async () => {
            await killApi();
            apis.push(await deployment.startApi());
          },
          async () => {
            const killer = await openConnectionKiller(deployment.stores);
            await killer.killAll();
            await killer.close();
          },
          async () => {
            await postgres.kill();
            await postgres.start();
          },
          // The one too that writes the ledger.
          async () => {
            await Promise.all(apis.map(killApi));
            apis.push(...(await Promise.all([deployment.startApi(), deployment.startApi()])));
          },
        ];
        for (const fault of Array.from({ length: rounds }, () => faults).flat()) {
          const sending = send();
          await delay((chatsPerFault * everyMs) / 2);
          await fault();
          await sending;
        }
      },
    );

    add(
      `U2 PostgreSQL is away for ${awayS} s, the queue in Redis → chats go on, and the ledger is whole afterwards`,
      {},
      async (books) => {
        await postgres.kill();
        const replies: Asked['reply'][] = [];
        for (let n = 0; n < awayS * 10; n += 1) {
          replies.push(books.ask({ provider: providerOf(n), model: 'sim-echo' }).reply);
          await delay(100);
        }
        expectCodes(await Promise.all(replies), ['ok']);
        await postgres.start();
      },
    );
  },
);
