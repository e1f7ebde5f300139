// Records from where a program passes on a text that the test can tell: for `--import`. Each line of the file that
// QUILLGATE_TEST_CALLS names has the files on the way, from the last to the first, through promises, timers and events.
import { createHook, executionAsyncId } from 'node:async_hooks';
import { appendFileSync } from 'node:fs';
import { Socket } from 'node:net';

const { QUILLGATE_TEST_CALLS: target, QUILLGATE_TEST_TEXT: text } = process.env;
/** Where each asynchronous resource was made: the files on the stack, and the resource that ran then. */
const made = new Map();
Error.stackTraceLimit = 100;

const filesOnStack = () =>
  (new Error().stack ?? '')
    .split('\n')
    .slice(1)
    .map((line) => /(?:file:\/\/)?(\/[^():]+)/.exec(line)?.[1])
    .filter((file) => file !== undefined && file !== import.meta.filename);

createHook({
  init: (id) => void made.set(id, { by: executionAsyncId(), files: filesOnStack() }),
}).enable();

function record(kind) {
  const files = filesOnStack();
  const seen = new Set();
  for (let id = executionAsyncId(); made.has(id) && !seen.has(id); id = made.get(id).by) {
    seen.add(id);
    files.push(...made.get(id).files);
  }
  appendFileSync(target, `${JSON.stringify({ kind, files })}\n`);
}

const { _writeGeneric } = Socket.prototype;
Socket.prototype._writeGeneric = function (writev, data, ...rest) {
  const chunks = writev ? data.map(({ chunk }) => chunk) : [data];
  if (chunks.some((chunk) => Buffer.from(chunk).includes(text))) record('sent');
  return _writeGeneric.call(this, writev, data, ...rest);
};

const { withResolvers } = Promise;
Promise.withResolvers = function () {
  const made = withResolvers.call(this);
  const resolve = (value) => {
    if (JSON.stringify(value)?.includes(text)) record('resolved');
    made.resolve(value);
  };
  return { ...made, resolve };
};
