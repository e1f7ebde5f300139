import { LRUCache } from 'lru-cache';
import { type ProviderId, providerIds } from '../contracts/contract.js';
import type { FleetFailing } from '../contracts/fleet-contract.js';
import type { FleetChats } from '../contracts/history.js';
import type { EndedChats } from '../protocol/stored-chat.js';

/** With fewer chats, some that fail by chance, or one caller's, would count for the provider. */
const minChats = 10;
/** The last counts of an API process that is silent or has stopped are good for so long, in milliseconds. */
const keptMs = 60_000;
const maxProcesses = 1000;

/** How chats have ended, as the API processes say once a second: what is heard of all of them adds up. */
export class ChatTotals {
  readonly #time: () => number;
  /** By process. */
  readonly #chats: LRUCache<string, readonly EndedChats[]>;
  readonly #failingSince = new Map<ProviderId, string>();

  /** `now` is a clock that never jumps, `time` that of the epoch; both are in milliseconds. */
  constructor({ now, time }: { now: () => number; time: () => number }) {
    this.#time = time;
    this.#chats = new LRUCache({ max: maxProcesses, ttl: keptMs, ttlResolution: 0, perf: { now } });
  }

  add(process: string, chats: readonly EndedChats[]): void {
    this.#chats.set(process, chats);
    for (const provider of providerIds) this.failingOf(provider);
  }

  /** The chats of the last five minutes; undefined when none has ended. */
  of(provider: ProviderId): FleetChats | undefined {
    const total = totalOf([...this.#chats.values()].flat().filter((chats) => chats.provider === provider));
    return total.ended > 0 ? total : undefined;
  }

  /** How the provider's chats fail, if of ten or more at least half did. */
  failingOf(provider: ProviderId): FleetFailing | undefined {
    const { ended = 0, failed = 0, code } = this.of(provider) ?? {};
    if (code === undefined || ended < minChats || failed < ended / 2) {
      this.#failingSince.delete(provider);
      return undefined;
    }
    const since = this.#failingSince.get(provider) ?? new Date(this.#time()).toISOString();
    this.#failingSince.set(provider, since);
    return { code, since };
  }
}

/** Counts of one provider together, with the code of most that failed, and their model if all have the same. */
export function totalOf(counts: readonly EndedChats[]): FleetChats {
  const sum = (field: 'ended' | 'failed') => counts.reduce((total, one) => total + one[field], 0);
  const failing = counts.filter(({ failed }) => failed > 0).sort((a, b) => b.failed - a.failed);
  const [most] = failing;
  const model = failing.every((one) => one.model === most?.model) ? most?.model : undefined;
  return { ended: sum('ended'), failed: sum('failed'), code: most?.code, model };
}
