import { z } from 'zod';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type {
  ConcurrencySuggestion,
  Fleet,
  FleetBreaker,
  FleetProvider,
  FleetWorker,
} from '../../shared/contracts/fleet-contract.js';

/** Tables of the providers, failing ones first, and of their workers; `now` is in milliseconds since the epoch. */
export function renderFleet(fleet: Fleet, now: number): string {
  const isFailing = ({ failing }: FleetProvider) => Number(failing !== undefined);
  const providers = fleet.providers.toSorted((a, b) => isFailing(b) - isFailing(a));
  const workers = providers.flatMap(({ provider, workers }) =>
    workers.map((worker) => ({ ...worker, provider })),
  );
  return [
    renderColumns(providerColumns, providers, now),
    ...(workers.length > 0 ? [renderColumns(workerColumns, workers, now)] : []),
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

type Columns<Row> = readonly (readonly [name: string, read: (row: Row, now: number) => string | null])[];

const renderColumns = <Row>(columns: Columns<Row>, rows: readonly Row[], now: number): string =>
  renderTable(
    columns.map(([name]) => name),
    rows.map((row) => columns.map(([, read]) => read(row, now))),
  );

const providerColumns: Columns<FleetProvider> = [
  ['provider', ({ provider }) => provider],
  ['state', describeState],
  ['kind', ({ kind }) => (kind === 'unknown' ? null : kind)],
  ['workers', ({ workers }) => String(workers.length)],
  ['in flight', ({ inFlight, concurrency }) => `${inFlight}/${concurrency}`],
  ['waiting', ({ queue }) => (queue ? String(queue.waiting) : null)],
  ['oldest', ({ queue }, now) => (queue?.oldestSince ? ageOf(queue.oldestSince, now) : null)],
  ['failed', ({ chats }) => (chats ? `${chats.failed}/${chats.ended}` : null)],
];

const workerColumns: Columns<FleetWorker & { provider: ProviderId }> = [
  ['provider', ({ provider }) => provider],
  ['worker', ({ worker }) => worker],
  ['state', stateOf],
  ['in flight', ({ inFlight, concurrency }) => `${inFlight}/${concurrency}`],
  ['p50', ({ calls }) => (calls?.latencyMs ? `${calls.latencyMs.p50} ms` : null)],
  ['p95', ({ calls }) => (calls?.latencyMs ? `${calls.latencyMs.p95} ms` : null)],
  ['errors', ({ calls }) => (calls ? percent(calls.errorRate) : null)],
  ['429', ({ calls }) => (calls ? percent(calls.rateLimitRate) : null)],
  ['breakers', ({ breakers }, now) => describeBreakers(breakers, now).join('; ') || null],
  [
    'last error',
    ({ lastError }, now) => (lastError ? `${lastError.code} ${ageOf(lastError.at, now)} ago` : null),
  ],
  ['settings', ({ settingsVersion }) => String(settingsVersion)],
  ['release', ({ release }) => release],
];

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

interface List<Row> {
  json: boolean | undefined;
  /** Printed to standard error when there are no rows. */
  none: string;
  columns: Record<string, (row: Row) => string | null>;
}

/** Prints rows as a table, or as JSON. */
export function printList<Row>(rows: readonly Row[], { json, none, columns }: List<Row>): void {
  if (json) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
  else if (rows.length === 0) process.stderr.write(`${none}\n`);
  else {
    const cells = rows.map((row) => Object.values(columns).map((read) => read(row)));
    process.stdout.write(renderTable(Object.keys(columns), cells));
  }
}

/** Lines of aligned columns under their names; `-` stands for a missing value. */
export function renderTable(names: readonly string[], rows: readonly (readonly (string | null)[])[]): string {
  const lines = [
    names.map((name) => name.toUpperCase()),
    ...rows.map((row) => row.map((cell) => printable(cell ?? '-'))),
  ];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => widthOf(line[column] ?? ''))));
  const rendered = lines.map((line) => line.map((cell, n) => pad(cell, widths[n] ?? 0)).join('  '));
  return rendered.map((line) => `${line.trimEnd()}\n`).join('');
}

/** The text without what a terminal obeys instead of showing it: escape sequences, line breaks, reversed text. */
export const printable = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{FFFD}');

/** In code points: close to the width in a terminal, which no simple rule gives. */
const widthOf = (text: string): number => [...text].length;

const pad = (text: string, width: number): string => text + ' '.repeat(width - widthOf(text));

const day = z.iso.date();
const clock = String.raw`(?<clock>\d{2}:\d{2})(?<seconds>:\d{2})?(?<fraction>\.\d+)?`;
const zone = String.raw`(?<zone>Z|(?<hours>[+-]\d{2})(?::?(?<minutes>\d{2}))?)`;
const pattern = new RegExp(`^(?<day>[\\d-]+)(?:(?:T|[ \\t]+)${clock}[ \\t]*${zone}?)?$`, 'i');

/**
 * Converts a time in the format of RFC 3339 or YAML (`2026-01-31`, `2026-01-31 10:00:00 +0100`) to RFC 3339 in UTC,
 * with milliseconds. Without a zone it is UTC. Undefined for anything else, and for a day that does not exist.
 */
export function parseTime(text: string): string | undefined {
  const parts = pattern.exec(text.trim())?.groups;
  // `new Date` would read the 30th of February as a day in March.
  if (parts === undefined || !day.safeParse(parts.day).success) return undefined;
  const { clock = '00:00', seconds = ':00', fraction = '', hours = '+00', minutes = '00' } = parts;
  const time = new Date(`${parts.day}T${clock}${seconds}${fraction.slice(0, 4)}${hours}:${minutes}`);
  if (Number.isNaN(time.getTime())) return undefined;
  // PostgreSQL's years below 100 would be read back as recent ones, and its years above 9999 not at all.
  return /^(?!00)\d{4}-/.test(time.toISOString()) ? time.toISOString() : undefined;
}

/**
 * The earliest moment, in UTC, that the time can mean: without a zone it may be local time anywhere, and days begin up
 * to 14 hours before those of UTC.
 */
export function earliestTime(text: string): string | undefined {
  const time = parseTime(text);
  if (time === undefined || pattern.exec(text.trim())?.groups?.zone !== undefined) return time;
  return new Date(Date.parse(time) - 14 * 3_600_000).toISOString();
}
