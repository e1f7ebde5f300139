import { expect, inject } from 'vitest';
import { authorization } from '../support/deployment.js';
import { eventually, expectCodes } from './support/expectations.js';
import { fault } from './support/fault.js';
import { footprintOf } from './support/footprint.js';
import { paced } from './support/pace.js';
import { deltas, openUnread, readRest, replyLength, slowKey } from './support/slow-reader.js';
import { newUser } from './support/users.js';

/** The number of streams, and the bound on the API's memory; ten slow clients need less. */
const many =
  inject('store').kind === 'redis' ? { fast: 450, slow: 50, growth: 6 } : { fast: 90, slow: 10, growth: 4 };
/** The provider of the slow readers' stream is busy with it alone. */
const fastAt = ['anthropic', 'bedrock', 'vertexai'] as const;

fault(
  {
    id: 'T8',
    injected: `${many.fast + many.slow} streams, ${many.slow} of them with clients that read little until the others have ended`,
    timeoutMs: 120_000,
  },
  async (books) => {
    const places = Object.fromEntries(
      fastAt.map((id) => [`${id.toUpperCase()}_CONCURRENCY`, `${many.fast}`]),
    );
    // No worker dies here, and a machine with too much to do must not look like it.
    const times = { CHAT_TIMEOUT_MS: '60000', WORKER_LOCK_MS: '30000' };
    const variables = { ...places, ...times, OPENAI_CONCURRENCY: '1' };
    const { api, url } = await books.start({ variables });
    const endAll = async (model: string) => {
      const ends = paced({ count: many.fast, everyMs: 4 }, (n) => {
        return books.stream({ provider: fastAt[n % fastAt.length] ?? 'anthropic', model }).end;
      });
      expectCodes(await ends, ['ok']);
      return footprintOf([api]).megabytes;
    };
    // One user alone may not read a stored chat with so many clients.
    const others = [await newUser(books, 'second'), await newUser(books, 'third')];
    const users = [authorization, ...others.map((other) => other.authorization)];
    const usualMegabytes = await endAll('sim-stream-5-20');
    const holding = books.ask({ model: 'sim-hang' });
    await holding.arrived();
    const chats = users.map((Authorization, n) => ({
      model: `sim-deltas-${deltas.count}-${deltas.length}@T8-${n}`,
      headers: { ...slowKey, Authorization },
    }));
    const writing = chats.map((chat) => books.stream(chat).end);
    const joining = Array.from({ length: many.slow }, (_, n) => openUnread(url, chats[n % chats.length]));
    await eventually(async () => expect(await books.jobs.unfinished()).toBe(1 + chats.length));
    holding.leave();
    const going = new AbortController();
    const slow = (await Promise.all(joining)).map((response) => readRest(response, going.signal));
    expectCodes(await Promise.all(writing), ['ok']);
    const megabytes = await endAll('sim-stream-80-50');
    // The three replies several times over, with what is not collected yet: two to four times as much as usual. An API
    // process that kept what fifty slow clients have not read took 1,849 MB, eighteen times as much.
    expect(megabytes).toBeLessThan(many.growth * usualMegabytes);
    going.abort();
    for (const { bytes, text } of await Promise.all(slow)) {
      expect(bytes).toBeGreaterThan(2 * replyLength);
      expect(text).toMatch(/"usage":\{[^}]*\}\}\n\n$/);
    }
    return `all done; the API's memory ${usualMegabytes} MB without slow clients, ${megabytes} MB with them`;
  },
);
