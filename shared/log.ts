import { pino } from 'pino';

/** Structured logs: one line of JSON per outcome. Ids, codes and times are fields; texts and secrets never are. */
export type Log = pino.Logger;

/** A log for one program, on stdout. Errors are reduced to what cannot quote a caller: name, code and stack lines. */
export function createLog({ program, level }: { program: string; level: string }): Log {
  return pino({
    level,
    base: { program, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: describeError },
  });
}

/**
 * Messages of errors can carry a prompt, a key or a URL with a password, so only the stack's frames are kept,
 * and the causes the same way.
 */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error };
  const code =
    'code' in error && /^[\w.-]{1,64}$/.test(String(error.code)) ? { code: String(error.code) } : {};
  return {
    type: error.name,
    ...code,
    at: error.stack?.replace(error.message, '').split('\n').slice(1),
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}
