import type { Call } from '../../../dev/simulator/call.js';
import { promptCanary } from '../../support/canaries.js';
import type { ChatCall, ChatReply, Deployment } from '../../support/deployment.js';
import type { Entry } from './balance.js';

/** A request on its way, and its caller, who can hang up. */
export interface Asked {
  readonly model: string;
  readonly reply: Promise<ChatReply>;
  /** Its first call at the provider. */
  arrived(): Promise<Call>;
  /** Closes the connection and gives the time, in milliseconds since the epoch. */
  leave(): number;
}

/** The requests of one case, each with a mark that its calls of the provider have as well. */
export interface Requests {
  readonly entries: readonly Entry[];
  ask(call: ChatCall): Asked;
  /** Counts a request for this model, which gets a mark of its own unless it has one. */
  enter(model: string | undefined): Entry;
  /** Counts its end. */
  settle(entry: Entry, reply: Promise<ChatReply>): void;
  /** Resolves when no request is on its way any more. */
  ended(): Promise<void>;
}

/** Keeps the requests of the case with this id. */
export function createRequests(id: string, deployment: () => Deployment): Requests {
  const entries: Entry[] = [];
  const ends: Promise<void>[] = [];
  const enter = (named = 'sim-echo'): Entry => {
    const model = named.includes('@') ? named : `${named}@${id}-${entries.length}`;
    const entry: Entry = { model, left: false, unanswered: false };
    entries.push(entry);
    return entry;
  };
  const settle = (entry: Entry, reply: Promise<ChatReply>) => void ends.push(note(entry, reply));
  const ask = (call: ChatCall): Asked => {
    const { chat, simulator } = deployment();
    const entry = enter(call.model);
    const { model } = entry;
    const going = new AbortController();
    const reply = chat({ messages: [{ content: promptCanary }], signal: going.signal, ...call, model });
    settle(entry, reply);
    return {
      model,
      reply,
      arrived: () =>
        Promise.race([simulator.waitForCall((call) => call.model === model), reply.then(answeredUncalled)]),
      leave: () => {
        entry.left = true;
        const at = Date.now();
        going.abort();
        return at;
      },
    };
  };
  return { entries, ask, enter, settle, ended: async () => void (await Promise.all(ends)) };
}

export function answeredUncalled({ status, body }: ChatReply): never {
  throw new Error(`answered before it was called: ${status} ${String(body.code)}`);
}

async function note(entry: Entry, reply: Promise<ChatReply>): Promise<void> {
  try {
    entry.answer = await reply;
  } catch {
    entry.unanswered = !entry.left;
  }
}
