import { type AimResult, verdict } from '../bench/aims.js';
import { number } from '../bench/table.js';
import type { Books } from './books.js';
import type { Gauges } from './gauges.js';
import type { ProcessName, Sample } from './samples.js';

/** What a soak has found. */
export interface Soak {
  readonly minutes: number;
  readonly books: Books;
  /** Taken under load. */
  readonly samples: readonly Sample[];
  /** Before the load, and once all is quiet again or the patience was over. */
  readonly before: Gauges;
  readonly after: Gauges;
  readonly quietAfterMs: number;
  readonly deaths: number;
}

const maxMegabytesPerMinute = 1;
/** Redis keeps the records of the last minute, whose number goes up and down a little. */
const maxRedisMegabytesPerMinute = 0.2;
/** A young heap grows for some minutes, whatever it is used for. */
const minMinutes = 10;
const warmUpShare = 0.2;
/** The pools of connections to the stores, at most 20 of one, let go of idle ones only later. */
const fewSockets = 30;

/** Compares with what the project wants to reach. */
export function judge(soak: Soak): AimResult[] {
  const { books } = soak;
  return [
    ...(['api', 'worker 1'] as const).map((name) => memoryAim(soak, name)),
    redisAim(soak),
    gaugesAim(soak),
    aim('every request has an answer', books.unanswered === 0, books.describe()),
    aim('every answer is what its kind must get', books.wrongAnswers === 0, describeWrong(books)),
    aim('no request is held back', books.heldBack === 0, `${books.heldBack} were`),
  ];
}

/** Megabytes a minute of whatever is picked, after the warm-up; not a number when there is nothing to see. */
export function growth(soak: Soak, pick: (sample: Sample) => number | undefined): number {
  const from = soak.minutes * warmUpShare;
  const points = soak.samples
    .filter(({ minute }) => minute >= from)
    .map((sample) => ({ minute: sample.minute, value: (pick(sample) ?? Number.NaN) / 1e6 }));
  return slopePerMinute(points);
}

function memoryAim(soak: Soak, name: ProcessName): AimResult {
  const text = `${name}: memory grows by at most ${maxMegabytesPerMinute} MB/min`;
  const slope = growth(soak, ({ memory }) => memory[name]);
  return judged(soak, text, slope, maxMegabytesPerMinute);
}

function redisAim(soak: Soak): AimResult {
  const text = `Redis: used memory grows by at most ${maxRedisMegabytesPerMinute} MB/min`;
  const slope = growth(soak, ({ redisBytes }) => redisBytes);
  if (Number.isNaN(slope)) return { aim: text, verdict: 'not measured', numbers: 'no Redis here' };
  return judged(soak, text, slope, maxRedisMegabytesPerMinute);
}

function judged({ minutes }: Soak, text: string, slope: number, most: number): AimResult {
  const numbers = `${number(slope, 3)} MB/min`;
  if (minutes < minMinutes) {
    return {
      aim: text,
      verdict: 'not measured',
      numbers: `${numbers}, but judged from ${minMinutes} minutes on`,
    };
  }
  return aim(text, slope <= most, numbers);
}

function gaugesAim({ before, after, quietAfterMs }: Soak): AimResult {
  const quiet = isQuiet(before, after);
  const numbers = `${describeGauges(after)} ${number(quietAfterMs / 1000, 1)} s after the last answer; sockets before ${before.apiSockets}`;
  return aim('all gauges are back to 0 when the load is over', quiet, numbers);
}

/** Whether nothing is under way, and the sockets are as they were. */
export const isQuiet = (
  before: Gauges,
  { asked, waiting, active, atProvider, apiSockets }: Gauges,
): boolean => asked + waiting + active + atProvider === 0 && apiSockets <= before.apiSockets + fewSockets;

export const describeGauges = ({ asked, waiting, active, atProvider, apiSockets }: Gauges): string =>
  `asked ${asked}, waiting ${waiting}, active ${active}, at the provider ${atProvider}, API sockets ${apiSockets}`;

const describeWrong = ({ wrong }: Books): string =>
  [...wrong].map(([what, count]) => `${count} × ${what}`).join(', ') || 'all are';

const aim = (text: string, met: boolean, numbers: string): AimResult => ({
  aim: text,
  verdict: verdict(met),
  numbers,
});

/** A value at a time in minutes. */
interface Point {
  readonly minute: number;
  readonly value: number;
}

/** By how much the values grow in a minute: the slope of the line through them by least squares. */
function slopePerMinute(points: readonly Point[]): number {
  const mean = (pick: (point: Point) => number) =>
    points.reduce((sum, point) => sum + pick(point), 0) / points.length;
  const meanMinute = mean(({ minute }) => minute);
  const meanValue = mean(({ value }) => value);
  const spread = mean(({ minute }) => (minute - meanMinute) ** 2);
  return mean(({ minute, value }) => (minute - meanMinute) * (value - meanValue)) / spread;
}
