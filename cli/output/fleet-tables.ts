import type { ProviderId } from '../../shared/contracts/contract.js';
import type {
  ConcurrencySuggestion,
  Fleet,
  FleetBreaker,
  FleetProvider,
  FleetWorker,
} from '../../shared/contracts/fleet-contract.js';
import { printable, renderTable } from './table.js';

/** Tables of the providers, failing ones first, and of their workers; `now` is in milliseconds since the epoch. */
export function renderFleet(fleet: Fleet, now: number): string {
  const isFailing = ({ failing }: FleetProvider) => Number(failing !== undefined);
  const providers = fleet.providers.toSorted((a, b) => isFailing(b) - isFailing(a));
  const workers = providers.flatMap(({ provider, workers }) =>
    workers.map((worker) => [provider, ...workerCells(worker, now)]),
  );
  return [
    renderTable(
      ['provider', 'state', 'kind', 'workers', 'in flight', 'waiting', 'oldest', 'failed'],
      providers.map((each) => [each.provider, ...providerCells(each, now)]),
    ),
    ...(workers.length > 0 ? [renderTable(['provider', ...workerColumns], workers)] : []),
  ].join('\n');
}

/** One line for the queue, each provider and each worker, by what it is about. */
export function fleetLines({ queue, providers }: Fleet, now: number): ReadonlyMap<string, string> {
  const lines = new Map([['queue', `queue ${queue.status}${queue.detail ? `: ${queue.detail}` : ''}`]]);
  for (const provider of providers) {
    const { provider: id, kind, concurrency, inFlight, queue: depth } = provider;
    const waiting = depth ? `, ${depth.waiting} waiting` : '';
    lines.set(
      id,
      `${id} ${describeState(provider)}, ${kind}, ${inFlight} of ${concurrency} in flight${waiting}`,
    );
    for (const worker of provider.workers) lines.set(`${id} ${worker.worker}`, workerLine(id, worker, now));
  }
  return new Map([...lines].map(([key, line]) => [key, printable(line)]));
}

/** Workers may take jobs although the chats fail. */
function describeState({ state, failing, chats }: FleetProvider): string {
  if (failing === undefined) return state;
  return `failing (${failing.code}${chats?.model ? ` of ${shortened(chats.model)}` : ''})`;
}

type Cells = (string | null)[];

function providerCells(provider: FleetProvider, now: number): Cells {
  const { kind, workers, inFlight, concurrency, queue, chats } = provider;
  return [
    describeState(provider),
    kind === 'unknown' ? null : kind,
    String(workers.length),
    `${inFlight}/${concurrency}`,
    queue ? String(queue.waiting) : null,
    queue?.oldestSince ? ageOf(queue.oldestSince, now) : null,
    chats ? `${chats.failed}/${chats.ended}` : null,
  ];
}

const workerColumns = [
  'worker',
  'state',
  'in flight',
  'p50',
  'p95',
  'errors',
  '429',
  'breakers',
  'last error',
  'settings',
  'release',
];

function workerCells(worker: FleetWorker, now: number): Cells {
  const { calls, lastError, settingsVersion, release } = worker;
  return [
    worker.worker,
    stateOf(worker, now),
    `${worker.inFlight}/${worker.concurrency}`,
    calls?.latencyMs ? `${calls.latencyMs.p50} ms` : null,
    calls?.latencyMs ? `${calls.latencyMs.p95} ms` : null,
    calls ? percent(calls.errorRate) : null,
    calls ? percent(calls.rateLimitRate) : null,
    describeBreakers(worker.breakers, now).join('; ') || null,
    lastError ? `${lastError.code} ${ageOf(lastError.at, now)} ago` : null,
    String(settingsVersion),
    release,
  ];
}

function workerLine(provider: string, worker: FleetWorker, now: number): string {
  const { state, pausedBy, breakers, lastError } = worker;
  return [
    `${provider} ${worker.worker} ${state}${pausedBy ? ` (${pausedBy})` : ''}`,
    `${worker.inFlight} of ${worker.concurrency} in flight`,
    // Without ages: a line is printed when it has changed.
    ...describeBreakers(
      breakers.map(({ nextProbeAt: _, since: __, ...breaker }) => breaker),
      now,
    ),
    ...(lastError ? [`last error ${lastError.code} at ${lastError.at}`] : []),
  ].join(', ');
}

function stateOf({ state, silentSince, pausedBy }: FleetWorker, now: number): string {
  if (silentSince) return `${state} ${ageOf(silentSince, now)}`;
  return pausedBy ? `${state} (${pausedBy})` : state;
}

/** Callers choose the names of models. */
const maxModelLength = 40;

/** One text for the breakers of several users that are alike. */
function describeBreakers(breakers: readonly FleetBreaker[], now: number): string[] {
  const alike = Map.groupBy(breakers, ({ model, state, reason, user }) =>
    JSON.stringify([model, state, reason, user === undefined]),
  );
  return [...alike.values()].flatMap(([first, ...others]) =>
    first ? [describeBreaker(first, others.length + 1, now)] : [],
  );
}

function describeBreaker(breaker: FleetBreaker, count: number, now: number): string {
  const { model, state, reason, user, nextProbeAt, since } = breaker;
  const name = model === null ? 'account' : shortened(model);
  const users = `${count} ${count === 1 ? 'user' : 'users'}`;
  const what = user === undefined ? state : `${state === 'open' ? 'refused' : state} for ${users}`;
  const why = reason ? ` (${reason})` : '';
  const probe = nextProbeAt ? `, next call in ${span(Date.parse(nextProbeAt) - now)}` : '';
  const idle = state === 'half-open' && since ? `, no call for ${ageOf(since, now)}` : '';
  return `${name} ${what}${why}${probe}${idle}`;
}

const shortened = (text: string): string =>
  text.length > maxModelLength ? `${text.slice(0, maxModelLength - 1)}…` : text;

const percent = (share: number): string => `${Math.round(share * 100)} %`;

const ageOf = (time: string, now: number): string => span(now - Date.parse(time));

const units = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
] as const;

/** A time in its largest unit; none is below 0. */
function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [unit, size] = units.find(([, size]) => seconds >= 2 * size) ?? ['s', 1];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** A suggested concurrency as one line. */
export const describeSuggestion = (
  provider: ProviderId,
  { concurrency, perWorker, arrivalsPerSecond, meanMs, p50Ms, p99Ms, jobs, overMs }: ConcurrencySuggestion,
): string =>
  `${provider}: ${concurrency} at once suggested, ${perWorker} for each worker: ${arrivalsPerSecond} jobs a second, of ${meanMs} ms ` +
  `(p50 ${p50Ms}, p99 ${p99Ms}), by the ${jobs} jobs of ${Math.round(overMs / 1000)} s`;
