import { once } from 'node:events';
import { clearScreenDown, cursorTo } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { WriteStream } from 'node:tty';
import { type Environment, parseConfig } from '../../shared/config/config.js';
import type { Fleet } from '../../shared/contracts/fleet-contract.js';
import { type ListenTimes, openFleet } from '../fleet.js';
import { fleetLines, printable, renderFleet } from '../output/fleet-tables.js';

const intervalMs = 1000;
/** Every worker has sent a heartbeat in this time, in milliseconds. */
const firstListenMs = 1200;

interface WatchOptions extends ListenTimes {
  output?: WriteStream;
  signal?: AbortSignal;
  /** How often the fleet is drawn, in milliseconds. */
  everyMs?: number;
}

/**
 * `quillgate pools watch`: the fleet, drawn anew each second on a terminal, elsewhere a line for each change, until
 * SIGINT, SIGTERM or the end of its reader. Throws `StartupError` when no store is configured.
 */
export async function watchPools(environment: Environment, options: WatchOptions = {}): Promise<void> {
  const { output = process.stdout, signal = untilStopped(process.stdout) } = options;
  const { listenMs = firstListenMs, everyMs = intervalMs, reachMs } = options;
  const open = openFleet(parseConfig(environment, 'command'), { reachMs });
  const show = output.isTTY ? drawOn(output) : printChangesTo(output);
  try {
    await open.listen(listenMs, signal);
    while (!signal.aborted) {
      const readBy = performance.now() + everyMs;
      const fleet = await open.state.read();
      if (signal.aborted) break;
      // Waits for a reader who is slow.
      if (!show(fleet) && output.writableNeedDrain)
        await once(output, 'drain', { signal }).catch(() => undefined);
      await delay(Math.max(0, readBy - performance.now()), undefined, { signal }).catch(() => undefined);
    }
  } finally {
    // The shell's prompt must not follow the last worker.
    if (output.isTTY) output.write('\n');
    await open.close();
  }
}

/** Aborts on a signal, and when the reader has gone, as `head` does. */
function untilStopped(output: WriteStream): AbortSignal {
  const stopped = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopped.abort());
  output.on('error', () => stopped.abort());
  return stopped.signal;
}

/** Shows a state of the fleet; false when the reader is behind. */
type Show = (fleet: Fleet) => boolean;

function drawOn(output: WriteStream): Show {
  return (fleet) => {
    const { queue, release, at } = fleet;
    const status = printable(`${queue.status}${queue.detail ? `: ${queue.detail}` : ''}`);
    const head = `Quillgate ${release}, ${at}, queue ${status}. Ctrl-C ends.\n\n`;
    const lines = `${head}${renderFleet(fleet, Date.parse(at))}`.split('\n');
    const { columns, rows } = output;
    const shown =
      lines.length > rows ? [...lines.slice(0, rows - 2), `… ${lines.length - rows + 2} more`] : lines;
    cursorTo(output, 0, 0);
    clearScreenDown(output);
    // A line that wraps would push the first one out.
    return output.write(shown.map((line) => [...line].slice(0, columns).join('')).join('\n'));
  };
}

function printChangesTo(output: WriteStream): Show {
  let before: ReadonlyMap<string, string> = new Map();
  return (fleet) => {
    const lines = fleetLines(fleet, Date.parse(fleet.at));
    const changed = [...lines].filter(([key, line]) => before.get(key) !== line).map(([, line]) => line);
    const gone = [...before.keys()].filter((key) => !lines.has(key)).map((key) => printable(`${key} gone`));
    before = lines;
    return output.write([...changed, ...gone].map((line) => `${fleet.at} ${line}\n`).join(''));
  };
}
