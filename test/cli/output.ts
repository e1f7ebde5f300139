import { onTestFinished, vi } from 'vitest';

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
