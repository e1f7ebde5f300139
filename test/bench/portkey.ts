import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../dev/free-port.js';
import { type Place, runToEnd } from './programs.js';

/** Another gateway (https://github.com/Portkey-AI/gateway): one Node process, without a queue. */
const name = '@portkey-ai/gateway';
const version = '1.15.2';
/** With newer ones, which its range allows, every stream of it fails. */
const adapter = '@hono/node-server@1.13.8';

/** What a request to it needs besides those of OpenAI's API: to whom it passes it on. */
export const headersToward = (simulatorUrl: string): Record<string, string> => ({
  'x-portkey-provider': 'openai',
  'x-portkey-custom-host': `${simulatorUrl}/v1`,
});

/** Installs it into the place with npm and starts it; nothing of ours depends on it. Throws when npm cannot get it. */
export async function openPortkey(place: Place): Promise<{ origin: string; pid: number | undefined }> {
  const { dir, lifecycle } = place;
  const flags = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--legacy-peer-deps'];
  await runToEnd(['npm', 'install', '--prefix', dir, ...flags, `${name}@${version}`, adapter], place);
  const port = await freePort();
  const program = join(dir, 'node_modules', name, 'build', 'start-server.js');
  const log = openSync(join(dir, 'portkey.log'), 'a');
  const child = spawn(process.execPath, [program, '--headless', `--port=${port}`], {
    cwd: dir,
    env: { PATH: process.env.PATH, NODE_ENV: 'production' },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const ended = once(child, 'exit');
  lifecycle.opened(name, child, async () => {
    child.kill('SIGTERM');
    await ended;
  });
  const origin = `http://127.0.0.1:${port}`;
  const signal = AbortSignal.any([lifecycle.stopping, AbortSignal.timeout(30_000)]);
  while (!(await fetch(origin, { signal }).catch(() => undefined))) await delay(100, undefined, { signal });
  return { origin, pid: child.pid };
}
