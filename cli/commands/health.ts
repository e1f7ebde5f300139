import { type Config, type Environment, parseConfig } from '../../shared/config/config.js';
import { StartupError } from '../../shared/runtime/program.js';

/** Maximum wait for an answer; a health check that hangs counts as failed. */
const timeoutMs = 4000;

/**
 * `quillgate health`, for the health checks of containers: asks the local API or worker
 * for `/livez`, or with `ready` for `/readyz`. Throws `StartupError` unless the answer is a success.
 */
export async function checkHealth(environment: Environment, { ready }: { ready?: boolean }): Promise<void> {
  const config = parseConfig(environment, 'command');
  const path = ready ? '/readyz' : '/livez';
  const response = (await ask(config, config.PORT, path)) ?? (await ask(config, config.WORKER_PORT, path));
  if (response === undefined)
    throw new StartupError(
      `No program answers at ports ${config.PORT} (PORT) and ${config.WORKER_PORT} (WORKER_PORT).`,
    );
  const text = await response.text();
  if (!response.ok) throw new StartupError(`${response.status} ${text}`);
  process.stdout.write(`${text}\n`);
}

/** The response; undefined when nothing answers. */
async function ask({ HOST }: Config, port: number, path: string): Promise<Response | undefined> {
  const host = addressHere.get(HOST) ?? HOST;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`;
  return fetch(url, { signal: AbortSignal.timeout(timeoutMs) }).catch(() => undefined);
}

/** The loopback addresses of servers that listen on all addresses. */
const addressHere = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);
