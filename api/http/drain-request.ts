import type { Request } from 'express';

const longestPauseMs = 2000;
const longestMs = 10_000;
const mostBytes = 16_777_216;

/**
 * Reads the rest of a body that is of no use any more, and drops it: a connection that is closed while the client is
 * still sending takes the answer with it. A client that pauses for 2 s, takes more than 10 s or sends more than
 * 16 MiB is cut off.
 */
export function dropUnreadBody(request: Request): void {
  if (request.complete) return;
  const cutOff = () => request.socket.destroy();
  const pause = setTimeout(cutOff, longestPauseMs).unref();
  const end = setTimeout(cutOff, longestMs).unref();
  const stop = () => {
    clearTimeout(pause);
    clearTimeout(end);
  };
  let bytes = 0;
  request
    .on('data', (chunk: Buffer) => {
      pause.refresh();
      bytes += chunk.length;
      if (bytes > mostBytes) cutOff();
    })
    .once('end', stop)
    .once('close', stop)
    .resume();
}
