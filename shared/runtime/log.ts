import { write, writeSync } from 'node:fs';
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
  return pino(options, new Output());
}

const stdout = 1;
/** Characters that wait for a slow reader or a full disk; lines beyond them are lost. */
const maxWaiting = 10_000_000;
const retryMs = 100;

/**
 * Writes lines to stdout. What is refused, as by a full disk, is tried again while the program runs, and once at its
 * end; pino's own destination tries for ever, in a loop that blocks the program.
 */
class Output {
  #waiting = '';
  #current = Buffer.alloc(0);
  #isWriting = false;
  #flushed: (() => void)[] = [];
  readonly #retry = setTimeout(() => this.#writeNext(), retryMs).unref();
  #hearsExit = false;

  write(line: string): void {
    // Not before: a process may have many logs that are silent.
    if (!this.#hearsExit) process.on('exit', () => this.#writeRest());
    this.#hearsExit = true;
    if (this.#waiting.length + line.length <= maxWaiting) this.#waiting += line;
    this.#writeNext();
  }

  /** Calls back once all is written, or refused. */
  flush(done: () => void): void {
    this.#flushed.push(done);
    this.#writeNext();
  }

  #writeNext(): void {
    if (this.#isWriting) return;
    this.#takeWaiting();
    if (this.#current.length === 0) return void this.#endFlush();
    this.#isWriting = true;
    write(stdout, this.#current, (error, written) => {
      this.#isWriting = false;
      this.#current = this.#current.subarray(written);
      if (error === null) return void this.#writeNext();
      this.#retry.refresh();
      this.#endFlush();
    });
  }

  #takeWaiting(): void {
    if (this.#current.length > 0) return;
    this.#current = Buffer.from(this.#waiting);
    this.#waiting = '';
  }

  #endFlush(): void {
    for (const done of this.#flushed.splice(0)) done();
  }

  /** At the exit, when only what is synchronous still happens. */
  #writeRest(): void {
    // What is being written has its thread, for which the exit waits.
    if (this.#isWriting) this.#current = Buffer.alloc(0);
    for (this.#takeWaiting(); this.#current.length > 0; this.#takeWaiting()) {
      try {
        this.#current = this.#current.subarray(writeSync(stdout, this.#current));
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) return;
        // A pipe that is full for a moment.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs);
      }
    }
  }
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
