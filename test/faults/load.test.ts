import { expect } from 'vitest';
import { profiles } from '../support/profiles.js';
import { codeOf } from './support/balance.js';
import { catalogue } from './support/catalogue.js';
import { eventually, expectCodes, untilOk } from './support/expectations.js';
import type { Asked } from './support/requests.js';
import { newUser } from './support/users.js';

/** One call at a time: of OpenAI, and of a provider that only Q3 asks. */
catalogue({ variables: { ...profiles.narrow, BEDROCK_CONCURRENCY: '1' } }, (add) => {
  add(
    'Q2 a backlog that is older than its deadline → no call is made for it, and fresh requests are answered',
    {},
    async (books) => {
      const { calls } = books.deployment.simulator;
      const busy = books.ask({ model: 'sim-gate-0' });
      await busy.arrived();
      const stale = [1, 2, 3].map(() => books.ask({ headers: { Prefer: 'wait=1' } }));
      // On a slow machine the pool may have said by then that a second is too short: then they are not accepted.
      expectCodes(await Promise.all(stale.map(({ reply }) => reply)), ['timeout', 'overloaded']);
      const fresh = [1, 2, 3].map(() => books.chat());
      busy.open();
      expectCodes(await Promise.all([busy.reply, ...fresh]), ['ok']);
      expect(stale.flatMap(({ model }) => calls.list({ model }))).toEqual([]);
    },
  );

  add(
    'Q5 one user asks for far more than there are slots, another for one chat → it is called before most of the flood',
    {},
    async (books) => {
      const other = await newUser(books);
      const busy = books.ask({ model: 'sim-gate-0' });
      const first = await busy.arrived();
      const flood = Array.from({ length: 40 }, () => books.chat());
      await eventually(async () => expect(await books.jobs.unfinished()).toBe(41));
      const chat = other({ model: 'sim-echo@Q5-other' });
      await eventually(async () => expect(await books.jobs.unfinished()).toBe(42));
      busy.open();
      expectCodes(await Promise.all([busy.reply, chat, ...flood]), ['ok']);
      const order = books.deployment.simulator.calls.list({ since: first.id }).map(({ model }) => model);
      // A user's first job comes before the second of another.
      expect(order.indexOf('sim-echo@Q5-other')).toBe(0);
    },
  );

  add(
    'Q1 more requests than can be served in time → refused without a call, and those that were accepted are answered',
    {},
    async (books) => {
      // So long the pool takes a call to be.
      for (let n = 0; n < 3; n += 1) await untilOk(books, { model: 'sim-latency-1000' });
      const busy = books.ask({ model: 'sim-gate-0' });
      await busy.arrived();
      const accepted = Array.from({ length: 40 }, () => books.chat());
      // Until the pool has sent its pace, the load cannot be known to be too high.
      let refused: Asked;
      do refused = books.ask({ headers: { Prefer: 'wait=5' } });
      while (codeOf(await refused.reply) === 'timeout');
      const { status, headers, body } = await refused.reply;
      expect([status, body.code]).toEqual([500, 'overloaded']);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      expect(books.deployment.simulator.calls.list({ model: refused.model })).toEqual([]);
      busy.open();
      expectCodes(await Promise.all([busy.reply, ...accepted]), ['ok']);
      await untilOk(books);
    },
  );

  add(
    'Q3 a job that has waited for most of its time, when a call is known to take longer than is left → no call',
    {},
    async (books) => {
      const first = books.ask({ provider: 'bedrock', model: 'sim-latency-6000' });
      await first.arrived();
      // Two seconds are left when the slot becomes free, if the machine is quick, and half a call takes three.
      const second = books.ask({ provider: 'bedrock', headers: { Prefer: 'wait=8' } });
      expectCodes([await second.reply], ['overloaded', 'timeout']);
      expectCodes([await first.reply], ['ok']);
      expect(books.deployment.simulator.calls.list({ model: second.model })).toEqual([]);
    },
  );
});
