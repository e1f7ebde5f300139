// Logs awkward errors with the project's log, one line each under the name of the case, for the test to read from
// stdout. Plain JavaScript that runs the TypeScript source as it is: the log writes to the process's own stdout.
const { createLog } = await import('../../shared/runtime/log.ts');

const canary = 'canary';
const changed = (error, change) => Object.assign(error, change);
const cyclic = new Error(canary);
cyclic.cause = cyclic;
const printedBefore = new Error(`one\n${canary} two`);
String(printedBefore.stack);

const errors = {
  message: new Error(canary),
  lines: new Error(`${canary}\n${canary} two\n    at ${canary} (${canary}:1:1)\n    at ${canary}`),
  cause: new TypeError('x', {
    cause: new RangeError(canary, { cause: new Error(`${canary}\n    at ${canary}`) }),
  }),
  'text as cause': new Error('x', { cause: canary }),
  aggregate: new AggregateError([new Error(canary)], canary),
  text: canary,
  object: { message: canary },
  code: changed(new Error(canary), { code: 'ECONNRESET' }),
  'number as code': changed(new Error(canary), { code: 429 }),
  'sentence as code': changed(new Error('x'), { code: `${canary} with blanks` }),
  'other fields': changed(new Error('x'), { detail: canary, parameters: [canary] }),
  'message changed': changed(printedBefore, { message: 'other' }),
  'empty message': new Error(''),
  cyclic,
};

const log = createLog({ program: 'test', level: 'info' });
for (const [name, err] of Object.entries(errors)) attempt(name, () => log.error({ err, name }, 'it broke'));
attempt('no words', () => log.error({ err: new Error(canary), name: 'no words' }));
attempt('bare', () => log.child({ name: 'bare' }).error(new Error(canary)));
log.debug({ name: 'too detailed' }, 'it broke');

function attempt(name, write) {
  try {
    write();
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ name, threw: error.name })}\n`);
  }
}
