import type { Call } from '../../../dev/simulator/call.js';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import { promptCanary } from '../../support/canaries.js';
import type { ChatCall, ChatReply, Deployment } from '../../support/deployment.js';
import type { Entry } from './balance.js';

/** The provider of the nth request, where each goes to another one than the request before. */
export const providerOf = (n: number): ProviderId => providerIds[n % providerIds.length] ?? 'openai';

/** A request on its way, and its caller, who can hang up. */
export interface Asked {
  readonly model: string;
  readonly reply: Promise<ChatReply>;
  /** Its first call at the provider, or its first after this one; rejects when the request ends without it. */
  arrived(after?: Call): Promise<Call>;
  /** Opens the gate of its model. */
  open(): void;
  /** Closes the connection and gives the time, in milliseconds since the epoch. */
  leave(): number;
}

/** The caller of a request that is counted. */
interface Caller extends Pick<Asked, 'model' | 'open' | 'leave'> {
  readonly entry: Entry;
  /** Aborts when the caller leaves. */
  readonly signal: AbortSignal;
  /** A call of the request at the provider, as in `Asked`, unless this end comes first. */
  arrived(end: Promise<ChatReply>, after?: Call): Promise<Call>;
}

/** The requests of one case, each with a mark that its calls of the provider have as well. */
export interface Requests {
  readonly entries: readonly Entry[];
  ask(call: ChatCall): Asked;
  /** Counts a request for this model, which gets a mark of its own unless it has one. */
  enter(model: string | undefined): Caller;
  /** Counts its end. */
  settle(entry: Entry, reply: Promise<ChatReply>): void;
  /** Resolves when no request is on its way any more. */
  ended(): Promise<void>;
  /** Has all callers hang up that still wait. */
  leaveAll(): void;
}

/** Keeps the requests whose marks begin with this. */
export function createRequests(mark: string, deployment: Deployment): Requests {
  const entries: Entry[] = [];
  const leaving: (() => void)[] = [];
  const ends: Promise<void>[] = [];
  const enter = (named = 'sim-echo'): Caller => {
    const { simulator } = deployment;
    const model = named.includes('@') ? named : `${named}@${mark}.${entries.length}`;
    const entry: Entry = { model, left: false, unanswered: false };
    entries.push(entry);
    const going = new AbortController();
    leaving.push(() => going.abort());
    return {
      ...{ model, entry, signal: going.signal },
      arrived: (end, after) =>
        Promise.race([
          simulator.waitForCall((call) => call.model === model && call.id > (after?.id ?? 0)),
          end.then(answeredUncalled),
        ]),
      open: () => simulator.open(model),
      leave: () => {
        entry.left = true;
        const at = Date.now();
        going.abort();
        return at;
      },
    };
  };
  const settle = (entry: Entry, reply: Promise<ChatReply>) => void ends.push(note(entry, reply));
  const ask = (call: ChatCall): Asked => {
    const { entry, signal, arrived, ...caller } = enter(call.model);
    const { model } = caller;
    const reply = deployment.chat({ messages: [{ content: promptCanary }], signal, ...call, model });
    settle(entry, reply);
    return { ...caller, reply, arrived: (after) => arrived(reply, after) };
  };
  return {
    ...{ entries, ask, enter, settle },
    ended: async () => void (await Promise.all(ends)),
    leaveAll: () => {
      for (const leave of leaving) leave();
    },
  };
}

function answeredUncalled({ status, body }: ChatReply): never {
  throw new Error(`answered before it was called: ${status} ${String(body.code)}`);
}

async function note(entry: Entry, reply: Promise<ChatReply>): Promise<void> {
  try {
    entry.answer = await reply;
  } catch {
    entry.unanswered = !entry.left;
  }
}
