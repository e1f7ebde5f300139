import { expect } from 'vitest';
import { codeOf } from './support/balance.js';
import { fault } from './support/fault.js';

fault(
  { id: 'A1', injected: 'kill -9 of the API while a client with a key waits', unanswered: 1 },
  async (books) => {
    const { api, startApi } = await books.start();
    const { url } = await startApi();
    const model = 'sim-latency-1500@A1';
    const headers = { 'Idempotency-Key': 'killed-in-the-middle' };
    const first = books.ask({ model, headers });
    await first.arrived();
    await books.kill(api);
    await expect(first.reply).rejects.toThrow();
    // While the first run goes on, and when it has ended.
    const joined = await books.chat({ model, headers, url });
    const replayed = await books.chat({ model, headers, url });
    expect([joined, replayed].map(codeOf)).toEqual(['ok', 'ok']);
    expect(replayed.body).toEqual(joined.body);
    expect(replayed.headers.get('idempotency-replayed')).toBe('true');
    return `200 twice from another API, ${Math.round(joined.tookMs)} and ${Math.round(replayed.tookMs)} ms after asking; one call`;
  },
);
