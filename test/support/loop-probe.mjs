import { createServer } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

/**
 * Imported into a program under test (`--import`): tells at the socket PROBE_SOCKET for how long at most the event loop
 * was held up since it was last asked, in milliseconds of the thread's processor time, which other programs' load does
 * not lengthen as it does the clock's, and how much memory is in use after a collection, in bytes.
 */
const everyMs = 5;
let maxMs = 0;
let before = cpuMs();

function cpuMs() {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function look() {
  const now = cpuMs();
  maxMs = Math.max(maxMs, now - before);
  before = now;
}

function tell() {
  look();
  const stallMs = maxMs;
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  before = cpuMs();
  maxMs = 0;
  return { stallMs, bytes: heapUsed + external };
}

let collect;
function collectGarbage() {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc');
  }
  collect();
}

if (isMainThread && process.env.PROBE_SOCKET) {
  setInterval(look, everyMs).unref();
  createServer((_request, response) => response.end(JSON.stringify(tell())))
    .listen(process.env.PROBE_SOCKET)
    .unref();
}
