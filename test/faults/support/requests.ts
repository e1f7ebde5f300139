import type { Call } from '../../../dev/simulator/calls.js';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import { promptCanary } from '../../support/canaries.js';
import type { ChatCall, ChatReply, Deployment } from '../../support/deployment.js';
import type { Entry } from './balance.js';

/** The provider of the nth request, where each goes to another one than the request before. */
export const providerOf = (n: number): ProviderId => providerIds[n % providerIds.length] ?? 'openai';

export type Requests = ReturnType<typeof createRequests>;
/** A request on its way, and its caller, who can hang up. */
export type Asked = ReturnType<Requests['ask']>;

/** The requests of one case, each with a mark that begins like this and that its calls of the provider have as well. */
export function createRequests(mark: string, deployment: Deployment) {
  const { simulator } = deployment;
  const entries: Entry[] = [];
  const leaving: (() => void)[] = [];
  const ends: Promise<void>[] = [];
  /** Counts a request for this model, which gets a mark of its own unless it has one. */
  const enter = (named = 'sim-echo') => {
    const model = named.includes('@') ? named : `${named}@${mark}.${entries.length}`;
    const entry: Entry = { model, left: false, unanswered: false };
    entries.push(entry);
    const going = new AbortController();
    leaving.push(() => going.abort());
    return {
      ...{ model, entry, signal: going.signal },
      /** Its first call at the provider, or its first after that one; rejects when the request ends without it. */
      arrived: (end: Promise<ChatReply>, after?: Call): Promise<Call> =>
        Promise.race([
          simulator.waitForCall((call) => call.model === model && call.id > (after?.id ?? 0)),
          end.then(answeredUncalled),
        ]),
      /** Opens the gate of its model. */
      open: () => simulator.open(model),
      /** Closes the connection. */
      leave: () => {
        entry.left = true;
        going.abort();
      },
    };
  };
  /** Counts its end. */
  const settle = (entry: Entry, reply: Promise<ChatReply>) => void ends.push(note(entry, reply));
  const ask = (call: ChatCall) => {
    const { entry, signal, arrived, ...caller } = enter(call.model);
    const { model } = caller;
    const reply = deployment.chat({ messages: [{ content: promptCanary }], signal, ...call, model });
    settle(entry, reply);
    return { ...caller, reply, arrived: (after?: Call) => arrived(reply, after) };
  };
  return {
    ...{ entries, ask, enter, settle },
    /** How many requests are on their way. */
    open: () => entries.filter(({ answer, left, unanswered }) => !answer && !left && !unanswered).length,
    /** Resolves when no request is on its way any more. */
    ended: async () => void (await Promise.all(ends)),
    /** Has all callers hang up that still wait. */
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
