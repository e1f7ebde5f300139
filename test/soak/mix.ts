/** One kind of request of the mix. */
export interface Kind {
  readonly model: string;
  /** Out of a thousand requests. */
  readonly perMille: number;
  /** How long it keeps a worker busy, in milliseconds. */
  readonly busyMs: number;
  /** What every answer must be one of: a status 200, or the code of a problem. */
  readonly answers: readonly string[];
  /** Whether the caller goes before the answer comes. */
  readonly leaves?: true;
}

/** The workers' time limit for a call, short so that a provider that hangs costs little. */
export const providerTimeoutMs = 3000;

/** Of a model that nobody sees succeed: its breaker opens now and then (docs/decisions/0016-circuits-by-model.md). */
const refused = 'provider_unavailable';

/** Providers of different speed; one request in a hundred meets a fault, and one caller in a hundred leaves. */
export const mix: readonly Kind[] = [
  { model: 'sim-latency-200', perMille: 400, busyMs: 200, answers: ['200'] },
  { model: 'sim-latency-500', perMille: 400, busyMs: 500, answers: ['200'] },
  { model: 'sim-latency-1000', perMille: 180, busyMs: 1000, answers: ['200'] },
  { model: 'sim-status-500', perMille: 4, busyMs: 500, answers: ['provider_error', refused] },
  { model: 'sim-hang', perMille: 3, busyMs: providerTimeoutMs, answers: ['provider_timeout', refused] },
  { model: 'sim-reset-body', perMille: 3, busyMs: 500, answers: ['provider_error', refused] },
  { model: 'sim-latency-1500', perMille: 10, busyMs: 750, answers: ['200', refused], leaves: true },
];

/** How long a request of the mix keeps a worker busy on average. */
export const meanBusyMs: number = mix.reduce(
  (sum, { perMille, busyMs }) => sum + (perMille * busyMs) / 1000,
  0,
);

/** A kind by chance, as often as the mix has it. */
export function pickKind(): Kind {
  let left = Math.random() * 1000;
  const found = mix.find(({ perMille }) => {
    left -= perMille;
    return left < 0;
  });
  const [first] = mix;
  const kind = found ?? first;
  if (kind === undefined) throw new Error('the mix is empty');
  return kind;
}
