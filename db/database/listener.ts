import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../shared/runtime/log.js';
import { retry } from '../../shared/runtime/retry.js';
import type { PostgresAddress } from '../../shared/urls/postgres-url.js';
import { openSession } from './connections.js';
import { sql } from './drizzle.js';
import { answerWithin, codeOf } from './errors.js';

/** Called while listening to a channel. */
export interface ListenHooks {
  /** Called each time listening has begun: earlier notifications were missed. */
  onListen: () => void;
  onNotify: () => void;
}

/** Listens to one channel until closed. */
export interface Listener {
  close(): Promise<void>;
}

interface ListenerOptions {
  address: PostgresAddress;
  channel: string;
  hooks: ListenHooks;
  log: Log;
  /** The least pause before it connects again, in milliseconds. */
  betweenAttemptsMs?: number;
  /** How often it asks whether the server is still there, in milliseconds. */
  heartbeatMs?: number;
  /** How long the server may take to answer, in milliseconds. */
  answerMs?: number;
}

const defaults = { betweenAttemptsMs: 500, heartbeatMs: 3000, answerMs: 2000 };

/** Listens on a connection of its own, and reconnects whenever it is lost or silent. Never throws. */
export function startListening(given: ListenerOptions): Listener {
  const options = { ...defaults, ...given };
  const closing = new AbortController();
  const listening = retry(() => listenOnce(options, closing.signal), {
    pauseMs: options.betweenAttemptsMs,
    randomize: true,
    signal: closing.signal,
    onFailure: (error) => options.log.debug({ code: codeOf(error) }, 'not listening to the database'),
  }).catch(() => undefined);
  return {
    close: async () => {
      closing.abort();
      await listening;
    },
  };
}

/** Always ends with an error: the connection is lost, does not answer a heartbeat, or listening is closed. */
async function listenOnce(
  { address, channel, hooks, heartbeatMs, answerMs }: Required<ListenerOptions>,
  closing: AbortSignal,
): Promise<never> {
  const lost = new AbortController();
  const connection = openSession({
    address,
    connectTimeoutMs: answerMs,
    session: { application_name: 'quillgate listener', statement_timeout: `${answerMs}ms` },
    onNotify: hooks.onNotify,
    onLost: () => lost.abort(),
  });
  const ended = AbortSignal.any([closing, lost.signal]);
  ended.addEventListener('abort', () => void connection.close(0));
  try {
    await answerWithin(answerMs, connection.db.execute(sql`listen ${sql.identifier(channel)}`));
    hooks.onListen();
    for (;;) {
      await delay(heartbeatMs, undefined, { signal: ended });
      await answerWithin(answerMs, connection.db.execute(sql`select 1`));
    }
  } finally {
    await connection.close(0);
  }
}
