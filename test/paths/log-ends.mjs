// Logs a thousand lines and ends at once, in the way that its argument names, for the test to count what has arrived.
// Plain JavaScript that runs the TypeScript source as it is: the log writes to the process's own stdout.
const { pbkdf2 } = await import('node:crypto');
const { createLog } = await import('../../shared/runtime/log.ts');
const { Lifecycle } = await import('../../shared/runtime/lifecycle.ts');

const [way] = process.argv.slice(2);
const log = createLog({ program: 'test', level: 'info' });
const throwUnseen = () => {
  throw new Error('unseen');
};
function runUntilStopped() {
  const lifecycle = new Lifecycle(log);
  lifecycle.closeOnSignals({ graceMs: 5000 });
  lifecycle.opened('last', log, (open) => open.info({ n: 'last' }));
  // Something that runs until it is stopped.
  const running = setInterval(() => undefined, 1000);
  lifecycle.stopping.addEventListener('abort', () => clearInterval(running));
}
const ways = {
  'nothing left to do': () => undefined,
  'process.exit': () => process.exit(0),
  'an exception that nothing handles': throwUnseen,
  'an exception while it runs': () => {
    new Lifecycle(log).closeOnSignals({ graceMs: 5000 });
    throwUnseen();
  },
  SIGTERM: () => {
    runUntilStopped();
    process.kill(process.pid, 'SIGTERM');
  },
  'SIGTERM from outside': runUntilStopped,
};
// These end through their lifecycle. Their lines have to wait: for a thread to write them, and then for the reader.
if (way === 'SIGTERM' || way === 'an exception while it runs') {
  for (let n = 0; n < 4; n++) pbkdf2('', '', 100_000, 64, 'sha512', () => undefined);
}
// Longer than a pipe holds, so that the reader has to keep up.
for (let n = 0; n < 1000; n++) log.info({ n, filler: 'x'.repeat(200) });
ways[way]();
