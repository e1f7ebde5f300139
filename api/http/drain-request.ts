import type { Request } from 'express';

const maxPauseMs = 2000;
const maxMs = 10_000;
const maxBytes = 16_777_216;

/** Reads and discards the rest of a body: closing the connection while the client still sends would lose the answer. */
export function drainRequest(request: Request): void {
  if (request.complete) return;
  const cutOff = () => request.socket.destroy();
  const pause = setTimeout(cutOff, maxPauseMs).unref();
  const end = setTimeout(cutOff, maxMs).unref();
  const stop = () => {
    clearTimeout(pause);
    clearTimeout(end);
  };
  let bytes = 0;
  request
    .on('data', (chunk: Buffer) => {
      pause.refresh();
      bytes += chunk.length;
      if (bytes > maxBytes) cutOff();
    })
    .once('end', stop)
    .once('close', stop)
    .resume();
}
