import yoctoSpinner from 'yocto-spinner';

/** Says what a command is doing to whoever waits for it, one stage after another. */
export interface Stages {
  /** The stage before has succeeded, and this one begins. */
  begin(text: string): void;
  /** The stage before is given up, and this one begins. */
  turnTo(text: string): void;
  /** The stage has succeeded; `text` tells what there is to say of that. */
  succeed(text?: string): void;
  /** The stage has failed; `text` tells what there is to say of that. */
  fail(text?: string): void;
}

/** Shows stages with a spinner where the stream is a terminal, and as plain lines where it is a file or a pipe. */
export function showStages(stream: NodeJS.WriteStream = process.stderr): Stages {
  // A terminal that was closed, a reader that has gone: no reason for the command to end otherwise than in order.
  stream.on('error', () => undefined);
  return stream.isTTY ? onTerminal(stream) : inLines(stream);
}

function onTerminal(stream: NodeJS.WriteStream): Stages {
  // Its handler of signals would end the program before it has stopped what it has started.
  const spinner = yoctoSpinner({ stream, handleSignals: false });
  // Gives the terminal its cursor back, however the program comes to its end.
  process.once('exit', () => spinner.stop());
  return {
    begin: (text) => void spinner.success().start(text),
    turnTo: (text) => void spinner.start(text),
    succeed: (text) => void spinner.success(text),
    fail: (text) => void spinner.error(text),
  };
}

function inLines(stream: NodeJS.WriteStream): Stages {
  const write = (text: string) => void stream.write(`${text}\n`);
  const writeIfAny = (text?: string) => (text === undefined ? undefined : write(text));
  return { begin: write, turnTo: write, succeed: writeIfAny, fail: writeIfAny };
}
