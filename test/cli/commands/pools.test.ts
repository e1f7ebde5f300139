import { PassThrough } from 'node:stream';
import type { WriteStream } from 'node:tty';
import { describe, expect, it, vi } from 'vitest';
import { watchPools } from '../../../cli/commands/pools.js';
import { patience } from '../../support/patience.js';

/** Nothing listens on port 1. */
const nowhere = { REDIS_URL: 'redis://127.0.0.1:1' };

/** The output until `isEnough`, to a stream of this kind. */
async function watchUntil(kind: object, isEnough: (written: string) => boolean): Promise<string> {
  const output = Object.assign(new PassThrough(), kind) as unknown as WriteStream;
  const ending = new AbortController();
  let written = '';
  output.on('data', (bytes) => {
    written += bytes;
  });
  const watching = watchPools(nowhere, {
    ...{ output, signal: ending.signal },
    ...{ listenMs: 0, everyMs: 10, reachMs: 50 },
  });
  await vi.waitFor(() => expect(isEnough(written)).toBe(true), patience);
  ending.abort();
  await watching;
  return written;
}

describe('watchPools', () => {
  it('a terminal -> draws over what it drew before, and no more than fits', async () => {
    const clear = '\u001b[1;1H\u001b[0J';
    const isTwice = (written: string) => written.split(clear).length > 2;
    const written = await watchUntil({ isTTY: true, columns: 40, rows: 5 }, isTwice);
    const [before, first = ''] = written.split(clear);
    expect(written.endsWith('\n')).toBe(true);
    expect(before).toBe('');
    const lines = first.split('\n');
    expect(lines[0]).toMatch(/^Quillgate \d/);
    expect(lines.map((line) => line.length <= 40)).not.toContain(false);
    expect(lines).toHaveLength(4);
    expect(lines.at(-1)).toMatch(/^… \d+ more$/);
  });

  it('anything else -> a line with the time for each change, that the queue is down among them', async () => {
    const written = await watchUntil({ isTTY: false }, (text) => text.includes(' vertexai '));
    expect(written).toMatch(/^\S+Z queue failing: the store cannot be reached.*\n\S+Z openai unknown, /);
    expect(written).not.toContain('\u001b');
  });
});
