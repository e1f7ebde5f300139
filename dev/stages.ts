import yoctoSpinner from 'yocto-spinner';

/** Shows what a command is doing, one stage after another. */
export type Stages = ReturnType<typeof onTerminal>;

/** Shows stages with a spinner where the stream is a terminal, and as plain lines where it is a file or a pipe. */
export function showStages(stream: NodeJS.WriteStream = process.stderr): Stages {
  // A closed terminal or reader must not end the command: it shuts down in order.
  stream.on('error', () => undefined);
  return stream.isTTY ? onTerminal(stream) : inLines(stream);
}

function onTerminal(stream: NodeJS.WriteStream) {
  // Its signal handler would end the program before it has stopped its children.
  const spinner = yoctoSpinner({ stream, handleSignals: false });
  // Restores the cursor of the terminal however the program ends.
  process.once('exit', () => spinner.stop());
  return {
    /** Begins a stage; the one before has succeeded. */
    begin: (text: string) => void spinner.success().start(text),
    /** Begins a stage; the one before is abandoned. */
    turnTo: (text: string) => void spinner.start(text),
    succeed: (text?: string) => void spinner.success(text),
    fail: (text?: string) => void spinner.error(text),
  };
}

function inLines(stream: NodeJS.WriteStream): Stages {
  const write = (text: string) => void stream.write(`${text}\n`);
  const writeIfAny = (text?: string) => (text === undefined ? undefined : write(text));
  return { begin: write, turnTo: write, succeed: writeIfAny, fail: writeIfAny };
}
