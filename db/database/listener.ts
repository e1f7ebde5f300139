import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../shared/runtime/log.js';
import type { PostgresAddress } from '../../shared/urls/postgres-url.js';
import { openConnection } from './connection.js';
import { answerWithin } from './database-timeout.js';
import { sql } from './drizzle.js';
import { codeOf } from './errors.js';

/** What to do while listening to a channel. */
export interface ListenHooks {
  /** Called each time that listening has begun: what was told before then was missed. */
  onListen: () => void;
  /** Called at each NOTIFY. */
  onNotify: () => void;
}

/** Listens to one channel until it is closed. */
export interface Listener {
  close(): Promise<void>;
}

interface ListenerOptions {
  address: PostgresAddress;
  channel: string;
  hooks: ListenHooks;
  log: Log;
}

const betweenAttemptsMs = 500;
const heartbeatMs = 3000;
const answerMs = 2000;

/** Listens on a connection of its own, and again whenever it is lost or silent. Never throws. */
export function startListening(options: ListenerOptions): Listener {
  const closing = new AbortController();
  const listening = listenAgainAndAgain(options, closing.signal);
  return {
    close: async () => {
      closing.abort();
      await listening;
    },
  };
}

async function listenAgainAndAgain(options: ListenerOptions, closing: AbortSignal): Promise<void> {
  while (!closing.aborted) {
    try {
      await listenOnce(options, closing);
    } catch (error) {
      if (!closing.aborted) options.log.debug({ code: codeOf(error) }, 'not listening to the database');
    }
    await delay(betweenAttemptsMs * (1 + Math.random()), undefined, { signal: closing }).catch(
      () => undefined,
    );
  }
}

/** Ends with an error: when the connection is lost, does not answer a heartbeat, or listening shall end. */
async function listenOnce(
  { address, channel, hooks }: ListenerOptions,
  closing: AbortSignal,
): Promise<never> {
  const lost = new AbortController();
  const connection = openConnection({
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
