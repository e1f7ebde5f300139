import { setTimeout as delay } from 'node:timers/promises';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import type { Entry } from '../../faults/support/balance.js';
import { keepDoing } from '../../faults/support/expectations.js';
import type { Balancer } from '../../support/balancer.js';
import { promptCanary } from '../../support/canaries.js';
import type { ChatReply } from '../../support/deployment.js';

/** A request and what has become of it. */
export interface CallersEntry extends Entry {
  readonly provider: ProviderId;
  /** Its `Idempotency-Key`, if it has one: then it is sent again when its connection is lost. */
  readonly key: string | undefined;
  /** Whether it is accepted first, and its reply fetched when it is there. */
  readonly isAsync: boolean;
  /** How often its connection was lost. */
  lost: number;
}

/** Callers who ask at a fixed pace, independent of earlier requests. */
export interface Callers {
  readonly entries: readonly CallersEntry[];
  /** From now on all requests have a key; resolves when none without one is on its way. */
  sendKeysOnly(): Promise<void>;
  /** Sends a request once more, with its key. */
  repeat(entry: CallersEntry): Promise<ChatReply>;
  /** Stops sending; resolves when all have ended. */
  stop(): Promise<void>;
}

/** Long enough to be under way when something happens. */
const model = 'sim-latency-700';
const patienceMs = 60_000;
const lookAgainMs = 200;
/** Who balances takes this long to learn that a process is gone. */
const sendAgainMs = 100;
const maxLosses = 20;
/** For a load whose end never comes; the simulator keeps twice as many calls. */
const maxRequests = 5000;

/** Every third request has a key, every fifth is asynchronous, each goes to another provider than the one before. */
export function startCallers(balancer: Balancer, everyMs: number): Callers {
  const entries: CallersEntry[] = [];
  const withoutKey = new Set<Promise<void>>();
  let keysOnly = false;
  const send = async (): Promise<void> => {
    const n = entries.length;
    if (n === maxRequests) return;
    const entry: CallersEntry = {
      model: `${model}@${n}`,
      provider: providerIds[n % providerIds.length] ?? 'openai',
      key: keysOnly || n % 3 === 0 ? `key-${n}` : undefined,
      isAsync: n % 5 === 0,
      left: false,
      unanswered: false,
      lost: 0,
    };
    entries.push(entry);
    const ended = note(entry, ask(balancer, entry));
    if (entry.key === undefined) {
      withoutKey.add(ended);
      void ended.then(() => withoutKey.delete(ended));
    }
    await ended;
  };
  const sending = keepDoing(everyMs, send);
  return {
    entries,
    sendKeysOnly: async () => {
      keysOnly = true;
      await Promise.all(withoutKey);
    },
    repeat: (entry) => ask(balancer, entry),
    stop: async () => void (await Promise.all(sending.stop())),
  };
}

async function note(entry: CallersEntry, reply: Promise<ChatReply>): Promise<void> {
  try {
    entry.answer = await reply;
  } catch {
    entry.unanswered = true;
  }
}

/** A mark of this request's prompt, which tells its reply from all others. */
export const markOf = ({ model }: Entry): string => `${promptCanary} of ${model}.`;

/** Sends the request and gives its final reply. */
async function ask(balancer: Balancer, entry: CallersEntry): Promise<ChatReply> {
  const { provider, key, isAsync } = entry;
  const request = {
    method: 'POST',
    headers: {
      'X-LLM': provider,
      'X-LLM-Model': entry.model,
      ...(key !== undefined && { 'Idempotency-Key': key }),
      ...(isAsync && { Prefer: 'respond-async' }),
    },
    body: JSON.stringify({ messages: [{ content: markOf(entry) }] }),
  };
  const post = () => exchange(balancer, '/chat', request);
  const first = key === undefined ? await post() : await insist(entry, post);
  if (first.status !== 202) return first;
  const path = first.headers.get('location') ?? '';
  for (;;) {
    const look = await insist(entry, () => exchange(balancer, path));
    const reply = finalReply(look);
    if (reply !== undefined) return reply;
    await delay(lookAgainMs);
  }
}

/** The reply that a look at a stored chat shows, once there is one. */
function finalReply(look: ChatReply): ChatReply | undefined {
  const { status, response, error } = look.body as {
    status?: string;
    response?: string;
    error?: { status: number };
  };
  if (look.status !== 200) return look;
  if (status === 'queued' || status === 'running') return undefined;
  if (status === 'completed') return { ...look, body: { response } };
  return { ...look, status: error?.status ?? 0, body: { ...error } };
}

/** Does it again while its connection is lost. */
async function insist(entry: CallersEntry, exchangeOnce: () => Promise<ChatReply>): Promise<ChatReply> {
  for (let losses = 1; ; losses += 1) {
    try {
      return await exchangeOnce();
    } catch (error) {
      entry.lost += 1;
      if (losses === maxLosses) throw error;
      await delay(sendAgainMs);
    }
  }
}

type Request = Parameters<Balancer['send']>[1];

async function exchange(balancer: Balancer, path: string, request?: Request): Promise<ChatReply> {
  const startedAt = performance.now();
  const answer = await balancer.send(path, { ...request, signal: AbortSignal.timeout(patienceMs) });
  const body = (await answer.json()) as Record<string, unknown>;
  return { status: answer.status, headers: answer.headers, body, tookMs: performance.now() - startedAt };
}
