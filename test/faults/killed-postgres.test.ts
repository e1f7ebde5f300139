import { expect } from 'vitest';
import { profiles } from '../support/profiles.js';
import { codeOf } from './support/balance.js';
import { catalogue } from './support/catalogue.js';
import { expectCodes, timed, untilOk } from './support/expectations.js';
import { startOwnPostgres } from './support/own-postgres.js';

/** Of the catalogue that runs. */
let server: Awaited<ReturnType<typeof startOwnPostgres>>;
const store = async () => (server = await startOwnPostgres());

/** A job whose renewal is lost is run again after its lock. */
const variables = { ...profiles.short, CHAT_TIMEOUT_MS: '90000' };

catalogue({ variables, store }, (add) => {
  add(
    'R2 PostgreSQL killed with -9 while a chat waits → others are refused at once, it is answered, and all is well',
    { callsPerRequest: 2, lost: 1, stores: ['postgres'] },
    async (books) => {
      const waiting = books.ask({ model: 'sim-gate-0' });
      await waiting.arrived();
      await server.kill();
      const refused = Promise.all([1, 2, 3].map(() => books.chat()));
      // Promised within 3 s; the deadline of these chats is 90 s.
      expect(await timed(refused)).toBeLessThan(30_000);
      expectCodes(await refused, ['queue_unavailable']);
      expect((await refused).map(({ status }) => status)).toEqual([500, 500, 500]);
      await server.start();
      await untilOk(books);
      waiting.open();
      expect(codeOf(await waiting.reply)).toBe('ok');
    },
  );
});
