import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { cpuSecondsOf, readProcessTable } from '../support/process-table.js';
import { type Ask, paced, type Reply, type Service, times, until } from './caller.js';
import { type Figure, figure, percentile } from './report.js';

const tookMs = (replies: readonly Reply[]): number[] => replies.map((reply) => reply.tookMs);
const good = (replies: readonly Reply[]): Reply[] => replies.filter(({ code }) => code === 'ok');

/** Throws unless every reply has one of the codes. */
function expectCodes(replies: readonly Reply[], ...allowed: string[]): void {
  const other = replies.find(({ code }) => !allowed.includes(code));
  if (other) throw new Error(`a chat was answered ${other.code}, not ${allowed.join(' or ')}`);
}

/** Five times as many requests as ten slots can answer at 500 ms. */
export async function overload({ chat }: Service): Promise<Figure[]> {
  const ask = () => chat({ model: 'sim-latency-500' });
  const perMs = (replies: readonly Reply[], ms: number) => good(replies).length / ms;
  const tenAtOnce = () => Promise.all(times(10, ask));
  // Until the pool has sent its pace, the load cannot be known to be too high.
  await tenAtOnce();
  const warmAt = performance.now();
  const warm: Reply[] = [];
  for (let n = 0; n < 8; n += 1) warm.push(...(await tenAtOnce()));
  const capacity = perMs(warm, performance.now() - warmAt);
  const startedAt = performance.now();
  let endsAt = 0;
  const replies = await paced(2000, 10, () => {
    endsAt = performance.now();
    return ask();
  });
  expectCodes(replies, 'ok', 'overloaded', 'timeout');
  const within = replies.filter(({ endedAt }) => endedAt <= endsAt);
  const measured = (100 * perMs(within, endsAt - startedAt)) / capacity;
  const refused = replies.filter(({ code }) => code === 'overloaded');
  return [
    figure('Q1: good answers at five times the capacity', measured, ['≥', 90], '% of the capacity'),
    figure('Q1: refusing what is too much, p99', percentile(tookMs(refused), 0.99), ['≤', 50]),
  ];
}

const callMs = 3000;
/** A model with a breaker of its own, because it is in OPENAI_MODELS. */
export const slow = `sim-latency-${callMs}@slow`;

/** What one user does to another: a flood of so many requests, and then what hurts most, in turns. */
export async function otherUsers({ ask, chat, quillgate }: Service, flood: number): Promise<Figure[]> {
  const secret = (await quillgate('users', 'add', 'other')).trim();
  const headers = { Authorization: `Basic ${Buffer.from(`other:${secret}`).toString('base64')}` };
  const other = (model?: string) => chat({ headers, model });
  await until(async () => (await other()).code === 'ok', 300);
  const latency = (n: number): Ask => ({ model: `sim-latency-${callMs / 2 + ((n % 20) * callMs) / 40}` });
  const body = JSON.stringify({ messages: [{ content: 'x'.repeat(1_000_000) }] });
  const large = (n: number): Ask => ({
    model: `sim-stream-1-1@${n}`,
    headers: { Prefer: 'respond-async' },
    body,
  });
  const waiting = times(flood, (n) => ask(latency(n)));
  // How long it takes to read a hundred megabytes is the processor's affair.
  expectCodes(await Promise.all(times(flood / 5, (n) => chat(large(n)))), 'accepted', 'rate_limited');
  const flooded = await paced(30, callMs / 8, () => other(slow));
  for (const { leave } of waiting) leave();
  const attacks: [count: number, ask: (n: number) => Ask][] = [
    [12, () => ({ model: slow, headers: { Prefer: 'wait=1' } })],
    [40, (n) => ({ model: `sim-status-500@name-${n}` })],
    [14, (n) => ({ model: `sim-fail-9999-503-budget@budget-${n}` })],
    [flood / 2, latency],
    [flood / 20, large],
  ];
  const attacking = paced(20, 1500, async (turn) => {
    const [count, attack] = attacks[turn % attacks.length] ?? [0, latency];
    const asked = times(count, (n) => ask(attack(n)));
    await delay(3000);
    for (const { leave } of asked) leave();
  });
  const models = [() => undefined, () => slow, (n: number) => `sim-fail-1-503-F1-${n}@once-${n}`];
  const asked = await Promise.all(models.map((model) => paced(30, 1000, (n) => other(model(n)))));
  await attacking;
  expectCodes([...flooded, ...asked.flat()], 'ok');
  const [during, took] = [tookMs(flooded), tookMs(asked.flat())];
  const calls = (title: string, ms: number, most: number) =>
    figure(`${title} of another user's answer`, ms / callMs, ['≤', most], '× one call');
  return [
    calls('Q5: during a flood, p99', percentile(during, 0.99), 2),
    calls('F1: during attacks, p95', percentile(took, 0.95), 2),
    calls('F1: during attacks, the slowest', percentile(took, 1), 4),
  ];
}

/** So many requests at once, alone and while other programs keep every processor busy. */
export async function waves({ chat, place }: Service, count: number): Promise<Figure[]> {
  const send = () => Promise.all(times(count, () => chat({ model: 'sim-latency-6000' })));
  const alone = await send();
  // Each in a session of its own: Linux divides the processors between sessions first.
  const busy = () => spawn(process.execPath, ['-e', 'for (;;);'], { detached: true, stdio: 'ignore' });
  const loops = times(availableParallelism(), busy);
  place.lifecycle.opened('busy loops', loops, () => void loops.map((loop) => loop.kill('SIGKILL')));
  const startedAt = performance.now();
  const beside = await send();
  const all = ((performance.now() - startedAt) / 1000) * loops.length;
  const table = readProcessTable();
  const taken = loops.reduce((sum, { pid }) => sum + cpuSecondsOf(table, pid), 0);
  for (const loop of loops) loop.kill('SIGKILL');
  const share = (replies: readonly Reply[]) => (100 * good(replies).length) / count;
  const logs = [1, 2].map((n) => readFileSync(join(place.dir, `worker-${n}.log`), 'utf8')).join('');
  const lost = logs.split('jobs lost to another worker').length - 1;
  const ofShare = 'F2: the same beside busy loops, of the share of the processors that these leave';
  return [
    figure(`Q6: ${count} requests at once that are answered`, share(alone), ['≥', 100], '%'),
    figure(ofShare, share(beside) / (1 - taken / all), ['≥', 90], '%'),
    figure('Q6, F2: jobs that lost their lock', lost, ['≤', 0], ''),
  ];
}
