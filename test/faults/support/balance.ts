import { expect } from 'vitest';
import type { ChatReply } from '../../support/deployment.js';
import type { LedgerBalance } from './ledger.js';

/** One request, from its sending to its end. */
export interface Entry {
  /** The name of its model, which marks its calls. */
  readonly model: string;
  answer?: ChatReply;
  /** Its caller hung up before the answer. */
  left: boolean;
  /** Its connection ended without an answer. */
  unanswered: boolean;
  /** Of a stream: what is wrong with it. */
  flaws?: readonly string[];
}

/** Exceptions of a case. */
export interface BooksRules {
  /** Calls of the provider for one request: more than one where a worker dies or a call is retried. */
  readonly callsPerRequest?: number;
  /** Calls that one start of a job may make; one by default. */
  readonly callsPerStart?: number;
  /** Callers whose connection ends without an answer, because their API is killed. */
  readonly unanswered?: number;
  /** Runs that may be lost, none by default: a worker is killed or frozen, or the store away for longer than a lock. */
  readonly lost?: number;
}

/** The ends of a case's requests, and the leftovers. */
export interface Balance extends ReturnType<typeof sumUp> {
  /** None are left when all is done: jobs, calls that the provider still serves, and entries of the ledger. */
  leftovers: { jobs: number; calls: number; outbox: number };
  /** How the ledger differs from the calls. */
  ledger: LedgerBalance;
  /** Lines of the programs' logs that tell of an unexpected error. */
  fatal: string[];
  /** Logs and problems that show a prompt or a secret. */
  leaks: number;
}

/** The rules for every case. */
export const balanced = ({ unanswered = 0, lost = 0 }: BooksRules): object => ({
  unanswered,
  overcalled: 0,
  flaws: [],
  leftovers: { jobs: 0, calls: 0, outbox: 0 },
  ledger: { missing: 0, twice: 0, wrongDays: 0, lost: expect.toSatisfy((runs: number) => runs <= lost) },
  strange: 0,
  fatal: [],
  leaks: 0,
});

/** Sums up the requests and the provider's calls, which are given by the names of their models. */
export function sumUp(entries: readonly Entry[], calledModels: readonly string[], rules: BooksRules) {
  const calls = countEach(calledModels);
  const marks = new Set(entries.map(({ model }) => markOf(model)));
  // Some cases ask for one model again and again.
  const perModel = Object.entries(countEach(entries.map(({ model }) => model))).map(([model, requests]) => ({
    requests,
    calls: calls[model] ?? 0,
  }));
  return {
    sent: entries.length,
    /** How many answers of each code; `ok` is a 200. */
    answers: countEach(entries.flatMap(({ answer }) => (answer ? [codeOf(answer)] : []))),
    left: entries.filter(({ left, answer }) => left && answer === undefined).length,
    unanswered: entries.filter(({ unanswered }) => unanswered).length,
    calls: calledModels.length,
    /** Calls without the mark of a request: a fallback's model may have another name, but has the same mark. */
    strange: calledModels.filter((model) => !marks.has(markOf(model))).length,
    flaws: entries.flatMap(({ flaws = [] }) => flaws),
    /** Calls beyond the first of a request. */
    repeated: perModel.reduce((sum, { calls, requests }) => sum + Math.max(0, calls - requests), 0),
    /** Requests with more calls than the case allows. */
    overcalled: perModel.filter(({ calls, requests }) => calls > (rules.callsPerRequest ?? 1) * requests)
      .length,
  };
}

/** The problem's code, `ok` for an answer, or the status of anything else. */
export const codeOf = ({ status, body }: ChatReply): string =>
  status === 200 ? 'ok' : String(body.code ?? status);

export const markOf = (model: string): string | undefined => model.split('@')[1];

function countEach(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
