import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';

const program = new URL('../../dist/programs/simulator.js', import.meta.url);

/** Starts the built program with an IPC channel; it says there where it listens. */
function start(...args: string[]): ChildProcess {
  const child = fork(program, args, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

describe('the simulator program', () => {
  it.each(['SIGINT', 'SIGTERM', 'disconnect'] as const)(
    '-> says where it listens, and ends with 0 on %s',
    async (end) => {
      const child = start('--port', '0');
      const output = text(child.stdout as NonNullable<typeof child.stdout>);
      const [{ url }] = (await once(child, 'message')) as [{ url: string }];
      expect(await (await fetch(url)).json()).toMatchObject({ simulator: true });
      if (end === 'disconnect') child.disconnect();
      else child.kill(end);
      expect(await once(child, 'exit')).toEqual([0, null]);
      expect(await output).toContain(`Provider simulator (no model is called) listening on ${url}`);
      expect(await output).toContain(`OPENAI_BASE_URL=${url}/v1`);
    },
  );

  it('that cannot listen -> says so', async () => {
    const first = start('--port', '0');
    const [{ port }] = (await once(first, 'message')) as [{ port: number }];
    const second = start('--port', String(port));
    const complaint = text(second.stderr as NonNullable<typeof second.stderr>);
    expect(await once(second, 'exit')).toEqual([1, null]);
    expect(await complaint).toContain(`cannot listen on 127.0.0.1:${port}`);
  });
});
