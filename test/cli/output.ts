import { expect, onTestFinished, vi } from 'vitest';
import { StartupError } from '../../shared/runtime/program.js';

/** The output of a command. */
export interface Output {
  stdout: string;
  stderr: string;
}

/** Collects what is printed until the test ends, instead of printing it. */
export function collectOutput(): Output {
  const output: Output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    const spy = vi.spyOn(process[name], 'write').mockImplementation((text) => {
      output[name] += text;
      return true;
    });
    onTestFinished(() => spy.mockRestore());
  }
  return output;
}

/** Runs a command and gives what it printed. */
export async function printedBy(command: () => Promise<void>): Promise<Output> {
  const output = collectOutput();
  await command();
  return output;
}

/** The message of a command that gives up. */
export async function complaintOf(command: Promise<unknown>): Promise<string> {
  const error = await command.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StartupError);
  return (error as StartupError).message;
}
