import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../../dev/free-port.js';
import type { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import { runToEnd } from '../run-to-end.js';

/** Another gateway, Portkey's (https://github.com/Portkey-AI/gateway): one Node process, without a queue. */
export interface Peer {
  readonly origin: string;
  readonly pid: number | undefined;
}

/** Where it takes the requests that OpenAI's API takes, and so does the simulator. */
export const completionsPath = '/v1/chat/completions';

/** What a request to it needs besides: to whom it passes it on. */
export const headersToward = (simulatorUrl: string): Record<string, string> => ({
  'x-portkey-provider': 'openai',
  'x-portkey-custom-host': `${simulatorUrl}/v1`,
});

const name = '@portkey-ai/gateway';
const version = '1.15.2';
/** With newer ones, which its range allows, every stream of it fails (`TypeError: immutable`, of the provider's headers). */
const adapter = '@hono/node-server@1.13.8';

/** For the report. */
export const peerTitle = `${name} ${version}`;

const answersWithinMs = 30_000;
const betweenTriesMs = 100;

/** Installs it into `dir` with npm and starts it; nothing of ours depends on it. Throws when npm cannot get it, or it does not start. */
export async function openPeer(lifecycle: Lifecycle, dir: string): Promise<Peer> {
  const environment = { ...process.env, npm_config_update_notifier: 'false' };
  const flags = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--legacy-peer-deps'];
  await runToEnd('npm', ['install', '--prefix', dir, ...flags, `${name}@${version}`, adapter], {
    cwd: dir,
    environment,
    lifecycle,
  });
  const port = await freePort();
  const program = join(dir, 'node_modules', name, 'build', 'start-server.js');
  const log = openSync(join(dir, 'peer.log'), 'a');
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
  const failed = ended.then(() => Promise.reject(new Error(`${name} ended at once`)));
  failed.catch(() => undefined);
  await Promise.race([untilAnswering(origin, lifecycle.stopping), failed]);
  return { origin, pid: child.pid };
}

async function untilAnswering(origin: string, stopping: AbortSignal): Promise<void> {
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(answersWithinMs)]);
  while (!(await fetch(origin, { signal }).catch(() => undefined)))
    await delay(betweenTriesMs, undefined, { signal });
}
