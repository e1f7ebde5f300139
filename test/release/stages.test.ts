import { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { showStages } from '../../dev/stages.js';

const hideCursor = '\u001B[?25l';
const showCursor = '\u001B[?25h';

/** A terminal, as far as a spinner needs one: what can be read on it, line by line. */
class Terminal extends Writable {
  readonly isTTY = true;
  readonly columns = 80;
  readonly lines = [''];
  hasCursor = true;

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const written = String(chunk);
    if (written.includes(hideCursor)) this.hasCursor = false;
    if (written.includes(showCursor)) this.hasCursor = true;
    const [first = '', ...more] = stripVTControlCharacters(written).split('\n');
    this.lines.push(`${this.lines.pop()}${first}`, ...more);
    done();
  }

  cursorTo(): void {}

  clearLine(): void {
    this.lines[this.lines.length - 1] = '';
  }
}

describe('stages on a terminal', () => {
  let others: NodeJS.ExitListener[];
  beforeEach(() => {
    others = process.listeners('exit');
    vi.useFakeTimers();
    vi.stubEnv('CI', undefined);
    vi.stubEnv('TERM', 'xterm');
  });
  afterEach(() => {
    for (const ours of process.listeners('exit')) if (!others.includes(ours)) process.off('exit', ours);
    vi.useRealTimers();
    vi.unstubAllEnvs();
  });

  it('-> spin beside the one that goes on, tick those that are done, and cross out what has failed', () => {
    const terminal = new Terminal();
    const stages = showStages(terminal as unknown as NodeJS.WriteStream);
    stages.begin('Building');
    vi.advanceTimersByTime(80);
    expect(terminal.lines).toEqual(['⠙ Building']);
    stages.begin('Starting');
    stages.turnTo('Stopping');
    vi.advanceTimersByTime(80);
    expect(terminal.lines).toEqual(['✔ Building', expect.stringMatching(/^\S Stopping$/)]);
    stages.succeed('Stopped');
    stages.begin('Building');
    stages.fail();
    vi.advanceTimersByTime(80);
    expect(terminal.lines).toEqual(['✔ Building', '✔ Stopped', '✖ Building', '']);
  });

  it('of a program that ends in the middle of one -> give the cursor back', () => {
    const terminal = new Terminal();
    const stages = showStages(terminal as unknown as NodeJS.WriteStream);
    const before = process.listenerCount('SIGINT');
    stages.begin('Starting');
    expect(terminal.hasCursor).toBe(false);
    expect(process.listenerCount('SIGINT')).toBe(before);
    process.listeners('exit').at(-1)?.call(process, 0);
    expect(terminal.hasCursor).toBe(true);
    expect(terminal.lines).toEqual(['']);
  });
});
