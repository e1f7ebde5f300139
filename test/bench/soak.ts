import { setTimeout as delay } from 'node:timers/promises';
import { providerIds } from '../../shared/contracts/contract.js';
import { memoryOf, readProcessTable } from '../support/process-table.js';
import { openService, paced, type Service, until } from './caller.js';
import type { Place } from './programs.js';
import { describeFigures, figure, isKept, number } from './report.js';
import type { StoreName } from './stores.js';

const refused = 'provider_unavailable';
const timeoutMs = 3000;
/**
 * Out of a thousand requests so many for this model, which keep a worker busy for so long; each must get one of the
 * answers, or its caller leaves. A model that no user sees succeed may be refused, when its breaker is open.
 */
const mix: readonly (readonly [perMille: number, model: string, busyMs: number, ...answers: string[]])[] = [
  [400, 'sim-latency-200', 200, 'ok'],
  [400, 'sim-latency-500', 500, 'ok'],
  [180, 'sim-latency-1000', 1000, 'ok'],
  [4, 'sim-status-500', 500, 'provider_error', refused],
  [3, 'sim-hang', timeoutMs, 'provider_timeout', refused],
  [3, 'sim-reset-body', 500, 'provider_error', refused],
  [10, 'sim-latency-1500', 750],
];
const kinds = mix.flatMap((kind) => Array<typeof kind>(kind[0]).fill(kind));
const meanBusyMs = kinds.reduce((sum, [, , busyMs]) => sum + busyMs, 0) / kinds.length;
const concurrency = 10;
/** Half of what two workers can do. */
const perSecond = (providerIds.length * concurrency * 1000) / meanBusyMs;
const sampleMs = 10_000;
const fewFiles = 30;
/** A young heap grows for some minutes, whatever it is used for. */
const judgedFromMinutes = 10;

/** Half load with faults for some minutes; gives whether memory stayed, nothing is left over and the books balance. */
export async function soak(minutes: number, store: StoreName, place: Place, print: (text: string) => void) {
  const settings = providerIds.map((id) => ({
    [`${id.toUpperCase()}_CONCURRENCY`]: `${concurrency}`,
    [`${id.toUpperCase()}_TIMEOUT_MS`]: `${timeoutMs}`,
  }));
  const service = await openService(
    store,
    Object.assign({ CHAT_USER_MAX_IN_FLIGHT: '1000' }, ...settings),
    place,
  );
  const { gateway, simulator } = service;
  const gauge = async (name: string) => sumOf(await (await fetch(`${gateway.url}/metrics`)).text(), name);
  const filesBefore = await gauge('process_open_fds');
  print(`- soak: ${minutes} min, ${number(perSecond)} requests/s; one of two workers dies now and then\n`);
  const answers: Record<string, number> = {};
  const samples: [api: number, worker: number, redis: number][] = [];
  const sampling = paced(minutes * (60_000 / sampleMs), sampleMs, async (n) => {
    const redis = sumOf(String(await gateway.store.redis?.command('INFO', 'memory')), 'used_memory:');
    const table = readProcessTable();
    const [api, worker] = [gateway.api, gateway.workers[0]].map((one) => memoryOf(table, one?.pid) / 1e6);
    samples.push([api ?? 0, worker ?? 0, redis / 1e6]);
    const seen = `${simulator.calls.inFlight} calls; API and worker ${number(api ?? 0)}, ${number(worker ?? 0)} MB`;
    print(`${(n * sampleMs) / 1000} s: ${seen}\n`);
  });
  const sending = paced(minutes * 60 * perSecond, 1000 / perSecond, async (n) => {
    const answer = await answerOf(service, n);
    answers[answer] = (answers[answer] ?? 0) + 1;
  });
  await Promise.race([Promise.all([sampling, sending, killNowAndThen(service, minutes)]), gateway.failed]);
  const leftOver = async () => simulator.calls.inFlight + (await gauge('quillgate_queue_jobs'));
  const newFiles = async () => (await gauge('process_open_fds')) - filesBefore;
  // The pools of connections to the stores, at most 20 of one, let go of idle ones only later, as callers do of theirs.
  const isQuiet = async () => (await leftOver()) === 0 && (await newFiles()) <= fewFiles;
  await until(isQuiet, 500).catch(() => until(isQuiet, 500).catch(() => undefined));
  const wrong = Object.keys(answers).filter((name) => name.startsWith('wrong'));
  const isJudged = minutes >= judgedFromMinutes;
  const growing = (title: string, place: 0 | 1 | 2, most: number) => {
    const perMinute = growth(samples.map((sample) => sample[place]));
    return figure(`${title}, growth`, perMinute, isJudged ? ['≤', most] : undefined, 'MB/min');
  };
  const figures = [
    growing('memory of the API', 0, 1),
    growing('memory of the worker that lives', 1, 1),
    growing('data of Redis', 2, 0.2),
    figure('jobs and calls left over', await leftOver(), ['≤', 0], ''),
    figure('files and sockets that the API opened', await newFiles(), ['≤', fewFiles], ''),
    figure('requests without an answer', answers.none ?? 0, ['≤', 0], ''),
    figure('kinds of answers that a request must not get', wrong.length, ['≤', 0], ''),
  ];
  print(`\n${JSON.stringify(answers)}\n\n${describeFigures(figures)}`);
  return figures.every(isKept);
}

/** Sends the nth request; gives its answer, `left`, `none`, or what is wrong with it. */
async function answerOf({ ask }: Service, n: number): Promise<string> {
  const [, model, busyMs, ...expected] = kinds[Math.floor(Math.random() * kinds.length)] ?? [0, '', 0];
  const { reply, leave } = ask({ model: `${model}@soak`, provider: providerIds[n % providerIds.length] });
  if (expected.length === 0) {
    await delay(Math.random() * busyMs * 2);
    leave();
    return 'left';
  }
  const { code } = await reply();
  return code === 'none' || expected.includes(code) ? code : `wrong: ${model} ${code}`;
}

/** Kills the second worker every five minutes, in a short soak twice, and starts another after five seconds. */
async function killNowAndThen({ gateway }: Service, minutes: number): Promise<void> {
  const everyMs = Math.min(300_000, minutes * 20_000);
  let mortal = gateway.workers[1];
  for (let deaths = 1; deaths < (minutes * 60_000) / everyMs; deaths += 1) {
    await delay(everyMs - 5000);
    if (mortal) process.kill(mortal.pid, 'SIGKILL');
    await delay(5000);
    mortal = await gateway.startWorker(`mortal-${deaths}`);
  }
}

/** By how much the values grow in a minute, after the first fifth: the slope by least squares. */
export function growth(values: readonly number[]): number {
  const after = values.slice(Math.floor(values.length / 5));
  const mean = (all: readonly number[]) => all.reduce((sum, one) => sum + one, 0) / all.length;
  const middle = (after.length - 1) / 2;
  const spread = mean(after.map((_, place) => (place - middle) ** 2));
  return (
    ((60_000 / sampleMs) * mean(after.map((value, place) => (place - middle) * (value - mean(after))))) /
    spread
  );
}

/** Of all lines that begin so, in metrics or in what Redis says. */
const sumOf = (lines: string, name: string): number =>
  lines
    .split('\n')
    .filter((line) => line.startsWith(name))
    .reduce((sum, line) => sum + Number(/[\d.]+\s*$/.exec(line)?.[0]), 0);
