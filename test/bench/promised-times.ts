import { setTimeout as delay } from 'node:timers/promises';
import { providerIds } from '../../shared/contracts/contract.js';
import { paced, type Service, times, until } from './caller.js';
import { type Figure, figure, percentile } from './report.js';

async function deadlines({ ask, simulator: { calls } }: Service): Promise<Figure[]> {
  const headers = { Prefer: 'wait=1' };
  const askAll = (model: string, each: number) =>
    providerIds.flatMap((provider) => times(each, () => ask({ provider, model, headers })));
  // The first call of an SDK takes longer than all that follow, and so does the first that is cut.
  await Promise.all(askAll('sim-hang', 1).map(({ reply }) => reply()));
  const late: number[] = [];
  const over: number[] = [];
  for (const model of Array(5).fill(['sim-hang', 'sim-hang-body', 'sim-drip-50']).flat()) {
    const endsAt = Date.now() + 1000;
    const since = calls.lastId;
    const asked = askAll(model, 6);
    for (const { tookMs } of await Promise.all(asked.map(({ reply }) => reply()))) late.push(tookMs - 1000);
    const made = calls.list({ since });
    await Promise.all(made.map(({ closed }) => closed));
    over.push(...made.map(({ closedAt = Number.NaN }) => closedAt - endsAt));
  }
  return [
    figure('D1: an answer after its deadline of 1 s, p99', percentile(late, 0.99), ['≤', 100]),
    figure('D1: the end of its call after the deadline, p99', percentile(over, 0.99), ['≤', 200]),
  ];
}

async function leaving({ ask }: Service): Promise<Figure[]> {
  const took: number[] = [];
  for (const provider of Array(25).fill(providerIds).flat()) {
    const { arrived, leave } = ask({ model: 'sim-hang', provider });
    const call = await arrived();
    const leftAt = leave();
    await call.closed;
    took.push((call.closedAt ?? Number.NaN) - leftAt);
  }
  return [figure('A2: the end of a call after its caller has left, p99', percentile(took, 0.99), ['≤', 250])];
}

async function firstDelta({ ask }: Service): Promise<Figure[]> {
  const took: number[] = [];
  for (let n = 0; n < 20; n += 1) {
    const { sent, startedAt } = ask({ model: 'sim-stream-5-20', headers: { Accept: 'text/event-stream' } });
    for await (const _ of (await sent).body ?? []) took[n] ??= performance.now() - startedAt;
  }
  return [figure('the first delta of a stream, median', percentile(took, 0.5))];
}

/** Redis forgets who hears of replies: again and again, because a process registers anew within two seconds. */
async function lostMessages({ ask, gateway }: Service): Promise<Figure[]> {
  const { redis } = gateway.store;
  if (redis === undefined) return [];
  const forgetting = paced(150, 20, async () => {
    await redis.command('UNLINK', 'bull::relay:{quillgate}:subs', 'bull::relay:{quillgate}:nodes');
    await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
  });
  const late = await paced(10, 150, async () => {
    const { arrived, reply } = ask({ model: 'sim-latency-150' });
    const call = await arrived();
    return (await reply()).code === 'ok' ? Date.now() - (call.finishedAt ?? Number.NaN) : Number.NaN;
  });
  await forgetting;
  return [figure('A4: an answer whose message was lost, at most', Math.max(...late), ['≤', 1200])];
}

async function settings({ ask, gateway, quillgate, simulator }: Service): Promise<Figure[]> {
  const { calls } = simulator;
  const { token } = JSON.parse(await quillgate('tokens', 'create', '--scope', 'admin', '--json'));
  const address = `${gateway.url}/admin/pools/vertexai`;
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'If-Match': '"0"' };
  await until(async () => (await fetch(address, { headers })).ok, 300);
  const asked = times(12, () => ask({ provider: 'vertexai', model: 'sim-latency-45000' }));
  await until(() => calls.inFlight === 6);
  const changing = fetch(address, { method: 'PUT', headers, body: JSON.stringify({ concurrency: 5 }) });
  const [measured] = await Promise.all([until(() => calls.inFlight === 10), changing]);
  for (const { leave } of asked) leave();
  await until(() => calls.inFlight === 0);
  return [figure('a change of settings at every worker', measured, ['≤', 1000])];
}

/** A model with a breaker of its own, because it is in OPENAI_MODELS. */
export const failing = 'sim-status-500@P10';

async function refusals({ chat }: Service): Promise<Figure[]> {
  const isRefused = ({ code }: { code: string }) => code === 'provider_unavailable';
  await until(async () => isRefused(await chat({ model: failing })));
  const refused = (await paced(160, 25, () => chat({ model: failing }))).filter(isRefused);
  const took = refused.map(({ tookMs }) => tookMs);
  // Those let in just before get their answer with the next probe.
  return [figure('P10: refusing a model that fails, p90', percentile(took, 0.9), ['≤', 100])];
}

/** Redis killed under load, and back after three seconds. */
async function outage({ chat, gateway }: Service): Promise<Figure[]> {
  const { redis } = gateway.store;
  if (redis === undefined) return [];
  const load = paced(80, 100, () => chat({ model: 'sim-latency-200' }));
  await delay(1500);
  await redis.kill();
  await delay(3000);
  await redis.start();
  const measured = await until(async () => (await chat()).code === 'ok');
  await load;
  return [figure('R2: a good answer after Redis is back', measured, ['≤', 2000])];
}

/** How long single chats take; the outage of the store comes last. */
export const measuresOfTimes = [deadlines, leaving, firstDelta, lostMessages, settings, refusals, outage];
