import type { FleetBreaker, FleetProvider, FleetWorker } from '../../shared/contracts/fleet-contract.ts';
import type { FleetChats } from '../../shared/contracts/history.ts';
import { formatNumber } from '../parts/format.ts';

/** How a state looks: the name of a class. */
export type Tone = 'good' | 'warn' | 'bad' | 'soft';

export interface Described {
  readonly text: string;
  readonly tone: Tone;
}

const names: Readonly<Record<string, string>> = {
  openai: 'OpenAI',
  anthropic: 'Anthropic',
  bedrock: 'Amazon Bedrock',
  vertexai: 'Google Vertex AI',
};

/** A provider's name as it writes it itself. */
export const nameOf = (provider: string): string => names[provider] ?? provider;

const tones: Readonly<Record<FleetProvider['state'], Tone>> = {
  serving: 'good',
  probing: 'warn',
  paused: 'bad',
  silent: 'bad',
  absent: 'soft',
  unknown: 'soft',
};

/** State of a provider, with the reason where it takes no jobs. `intake` is the setting of that name. */
export function describeProvider(
  { state, workers, failing, chats }: FleetProvider,
  intake: unknown,
): Described {
  if (intake === 'draining' && state === 'serving') return { text: 'draining', tone: 'warn' };
  if (failing) return { text: `failing: ${describeFailed({ ...chats, ...failing })}`, tone: 'bad' };
  const reasons = new Set(workers.filter((one) => one.state === state).flatMap(reasonOf));
  return describeState(state, [...reasons]);
}

/** Puts failing pools before the others, and otherwise keeps their order. */
export const failingFirst = (pools: readonly FleetProvider[]): FleetProvider[] =>
  pools.toSorted((a, b) => Number(b.failing !== undefined) - Number(a.failing !== undefined));

/** State of a worker, with its reason. */
export const describeWorker = (worker: FleetWorker): Described =>
  describeState(worker.state, reasonOf(worker));

function describeState(state: FleetProvider['state'], why: readonly string[]): Described {
  const text = state === 'absent' ? 'no worker' : state;
  return { text: [text, why.join(', ')].filter(Boolean).join(': '), tone: tones[state] };
}

/** Why a worker takes no jobs, or one at a time. */
function reasonOf({ state, pausedBy, breakers }: FleetWorker): string[] {
  if (state !== 'paused' && state !== 'probing') return [];
  if (pausedBy === 'operator') return ['by an operator'];
  if (pausedBy === 'clock') return ['its clock differs'];
  if (pausedBy !== undefined) return [pausedBy];
  const account = breakers.find(({ model, user }) => model === null && user === undefined);
  return account?.reason ? [describeReason(account.reason)] : [];
}

const reasons: Readonly<Record<string, string>> = {
  credentials: 'the provider refuses the credentials',
  credit: 'the account has no credit left',
  unreachable: 'the provider cannot be reached',
  operator: 'an operator holds the breaker open',
};

const describeReason = (reason: string): string => reasons[reason] ?? reason.replaceAll('_', ' ');

/** How chats failed, with the model if it is one alone. */
export const describeFailed = ({ code = '', model }: Pick<FleetChats, 'code' | 'model'>): string =>
  describeReason(code) + (model === undefined ? '' : ` of ${model}`);

/** The effect of a provider's intake on the chats that are there now. */
export function describeIntake(intake: unknown, pool: FleetProvider): string {
  const { inFlight } = pool;
  const waiting = pool.queue?.waiting;
  if (intake === 'paused') return `Paused: ${countOf(waiting, 'chat')} ${verb(waiting, 'wait')}. ${toResume}`;
  if (intake === 'draining') {
    const left = waiting === undefined ? undefined : waiting + inFlight;
    const finish = left === undefined ? 'the others finish' : `${formatNumber(left)} ${verb(left, 'finish')}`;
    return `Draining: new chats are refused, ${finish}. ${toResume}`;
  }
  return `Drain: new chats are refused, the others finish. Pause: ${describePause(pool)}`;
}

/** The effect of a pause: `3 waiting chats stay queued; 1 running call finishes.` */
export function describePause({ inFlight, queue }: FleetProvider): string {
  const waiting = queue?.waiting;
  const stay = `${countOf(waiting, 'waiting chat')} ${verb(waiting, 'stay')} queued`;
  return `${stay}; ${countOf(inFlight, 'running call')} ${verb(inFlight, 'finish')}.`;
}

const toResume = 'Choose Open to resume.';

/** `1 chat`, `3 chats`; `all chats` where the number is not known. */
const countOf = (count: number | undefined, noun: string): string =>
  `${count === undefined ? 'all' : formatNumber(count)} ${noun}${count === 1 ? '' : 's'}`;

/** The verb for so many. */
const verb = (count: number | undefined, plural: string): string =>
  count === 1 ? `${plural}${plural.endsWith('sh') ? 'es' : 's'}` : plural;

/** `open: provider error`, `limited`; where it concerns some users alone, `refused for 2 users: provider error`. */
export function describeBreaker({ state, reason, user }: FleetBreaker, users = 1): string {
  const toUsers = `${state === 'open' ? 'refused' : state} for ${users} user${users === 1 ? '' : 's'}`;
  return (user === undefined ? state : toUsers) + (reason ? `: ${describeReason(reason)}` : '');
}

/**
 * A breaker that stays half-open waits for a call: nothing is known to be wrong. One that refuses a single user leaves
 * the provider well for the others.
 */
export const toneOfBreaker = ({ state, user }: FleetBreaker): Tone =>
  ({ open: user === undefined ? 'bad' : 'warn', limited: 'warn', 'half-open': 'soft' })[state] as Tone;

/** The p95 of the last minute's calls. Percentiles cannot be added: the slowest live worker's counts. */
export function p95Of(workers: readonly FleetWorker[]): number | undefined {
  const slowest = workers.flatMap(({ state, calls }) =>
    state === 'silent' ? [] : (calls?.latencyMs?.p95 ?? []),
  );
  return slowest.length > 0 ? Math.max(...slowest) : undefined;
}

/** How many of the live workers work by these settings, as their heartbeats say. */
export function reachOf(workers: readonly FleetWorker[], version: number): { live: number; current: number } {
  const live = workers.filter(({ state }) => state !== 'silent');
  const current = live.filter(({ settingsVersion }) => settingsVersion >= version);
  return { live: live.length, current: current.length };
}
