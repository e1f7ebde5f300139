import { pino } from 'pino';

/** Structured logs: one line of JSON per outcome. Ids, codes and times are fields; texts and secrets never are. */
export type Log = pino.Logger;

/** A log for one program, on stdout. Errors are reduced to what cannot quote a caller: name, code and stack frames. */
export function createLog({ program, level }: { program: string; level: string }): Log {
  const options: pino.LoggerOptions = {
    level,
    base: { program, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: (error: unknown) => describeError(error) },
    hooks: {
      // A line without a message would get that of its error.
      logMethod([first, ...words], log) {
        const fields = first instanceof Error ? { err: first } : first;
        log.apply(this, words.length === 0 && typeof fields === 'object' ? [fields, ''] : [fields, ...words]);
      },
    },
  };
  // With the default of 0 bytes, `flush` would call back at once, while lines are still being written.
  return pino(options, pino.destination({ sync: false, minLength: 1 }));
}

/** The frames of a stack, without the message above them, which can quote anything. */
export function stackFrames(error: Error): string[] {
  const lines = (error.stack ?? '').replace(error.message, '').split('\n');
  return lines.filter((line) => framePattern.test(line));
}

const framePattern = /^ {4}at (?:.* \(|async )?(?:file:\/\/\/|node:|\/)\S+:\d+:\d+\)?$/;

const deepestCause = 5;

/** An error and its causes without their messages, which can contain a prompt, a key or a URL with a password. */
function describeError(error: unknown, depth = 0): object {
  if (!(error instanceof Error)) return { type: typeof error };
  const facts = Object.fromEntries(
    ['code', 'word', 'status']
      .map((name) => [name, String(Object.getOwnPropertyDescriptor(error, name)?.value)] as const)
      .filter(([, value]) => value !== 'undefined' && /^[\w.-]{1,64}$/.test(value)),
  );
  const cause =
    error.cause === undefined || depth === deepestCause
      ? {}
      : { cause: describeError(error.cause, depth + 1) };
  return { type: error.name, ...facts, at: stackFrames(error), ...cause };
}
