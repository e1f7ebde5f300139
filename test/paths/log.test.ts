import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { patience } from '../support/patience.js';

interface Line {
  name: string;
  err?: { type: string; code?: string; at?: string[]; cause?: { type: string; cause?: { type: string } } };
  program?: string;
  msg?: string;
  threw?: string;
}

const writer = fileURLToPath(new URL('log-writer.mjs', import.meta.url));
const output = execFileSync(process.execPath, ['--no-warnings', writer], { encoding: 'utf8' });
const lines = output
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Line);

function lineOf(name: string): Line {
  const line = lines.find((one) => one.name === name);
  if (line === undefined) throw new Error(`no line for ${name}`);
  return line;
}

describe('createLog', () => {
  it.each([
    'message',
    'lines',
    'cause',
    'text as cause',
    'aggregate',
    'text',
    'object',
    'code',
    'number as code',
    'sentence as code',
    'other fields',
  ])('an error (%s) -> nothing of what it says is logged', (name) => {
    const line = lineOf(name);
    expect(line.msg).toBe('it broke');
    expect(JSON.stringify(line)).not.toContain('canary');
  });

  // The stack still holds the message the error was made with, which is not the one that is cut out of it.
  it('a message that was changed after the error was made -> is not logged', () => {
    expect(JSON.stringify(lineOf('message changed'))).not.toContain('canary');
  });

  // pino takes the error's message for the line's own words when the caller gives none.
  it.each(['no words', 'bare'])(
    'an error that is logged without words (%s) -> its message is not logged',
    (name) => {
      expect(JSON.stringify(lineOf(name))).not.toContain('canary');
    },
  );

  // Following the causes never ends, and the overflow is thrown at the caller of the log.
  it('an error that is its own cause -> is logged', () => {
    expect(lineOf('cyclic')).not.toHaveProperty('threw');
  });

  it('an error -> type, code, frames and causes are logged', () => {
    expect(lineOf('code').err).toMatchObject({ type: 'Error', code: 'ECONNRESET' });
    expect(lineOf('number as code').err).toMatchObject({ code: '429' });
    expect(lineOf('sentence as code').err).not.toHaveProperty('code');
    expect(lineOf('cause').err).toMatchObject({
      type: 'TypeError',
      cause: { type: 'RangeError', cause: { type: 'Error' } },
    });
    for (const name of ['message', 'lines', 'empty message']) {
      const frames = lineOf(name).err?.at?.filter((line) => line !== '') ?? [];
      expect(frames.length, name).toBeGreaterThan(0);
      for (const frame of frames) expect(frame).toMatch(/^ {4}at .*(log-writer|node:internal)/);
    }
  });

  it('a line -> names the program, and is left out below its level', () => {
    expect(lineOf('message').program).toBe('test');
    expect(lines.map(({ name }) => name)).not.toContain('too detailed');
  });
});

const ends = fileURLToPath(new URL('log-ends.mjs', import.meta.url));
const endsOf = (way: string) => ['--no-warnings', '--experimental-transform-types', ends, way];
const ways: [way: string, code: number, last: unknown][] = [
  ['nothing left to do', 0, 999],
  ['process.exit', 0, 999],
  ['an exception that nothing handles', 1, 999],
  ['an exception while it runs', 1, undefined],
  ['SIGTERM', 0, 'last'],
];

describe('what was logged before a program ends', () => {
  it.concurrent.each(ways)('%s -> has arrived whole', async (way, code, last) => {
    const program = spawn(process.execPath, endsOf(way), { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(program, 'close');
    // A reader that is late, until no more fits: the program has to wait for it, or loses what it could not write.
    const { stdout } = program;
    stdout.pause();
    const isFull = () => stdout.readableLength >= stdout.readableHighWaterMark || program.exitCode !== null;
    stdout.on('readable', () => undefined);
    await vi.waitUntil(isFull, patience);
    stdout.removeAllListeners('readable');
    const written = (await text(stdout)).trim().split('\n');
    const [status] = await ended;
    expect(status).toBe(code);
    const numbers = written.map((line) => (JSON.parse(line) as { n?: unknown }).n);
    // A pipe that is full for a moment may have a later line overtake some: each has its time.
    const counted = numbers.filter((n) => typeof n === 'number').toSorted((a, b) => a - b);
    expect(counted).toEqual(Array.from({ length: 1000 }, (_, n) => n));
    expect(numbers).toContain(last);
  });
});

// Linux alone has a file that is always full.
describe.runIf(process.platform === 'linux')('a log on a full disk', () => {
  it.concurrent.for(ways)(
    '%s -> is lost, and the program ends as it would',
    async ([way, code], { onTestFinished }) => {
      const full = openSync('/dev/full', 'a');
      const program = spawn(process.execPath, endsOf(way), { stdio: ['ignore', full, 'ignore'] });
      closeSync(full);
      onTestFinished(() => void program.kill('SIGKILL'));
      expect(await once(program, 'exit')).toEqual([code, null]);
    },
  );

  it('that has room again -> goes on', async ({ onTestFinished }) => {
    const folder = mkdtempSync(join(tmpdir(), 'quillgate-log-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'log');
    const log = openSync(file, 'a');
    // A limit of a file's size, 400 blocks of 512 bytes, is refused like a full disk.
    const limited = `trap '' XFSZ; ulimit -f 400; exec "$0" "$@"`;
    const args = ['-c', limited, process.execPath, ...endsOf('SIGTERM from outside')];
    const program = spawn('sh', args, { stdio: ['ignore', log, 'inherit'] });
    closeSync(log);
    onTestFinished(() => void program.kill('SIGKILL'));
    await vi.waitUntil(() => statSync(file).size === 400 * 512, patience);
    truncateSync(file);
    await vi.waitUntil(() => readFileSync(file, 'utf8').includes('"n":999,'), patience);
    program.kill('SIGTERM');
    expect(await once(program, 'exit')).toEqual([0, null]);
    expect(readFileSync(file, 'utf8')).toContain('"n":"last"');
  });
});
