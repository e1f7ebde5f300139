import { execFileSync } from 'node:child_process';

const names = ['chromium', 'chromium-browser', 'google-chrome'];

/** A Chromium on the PATH, if there is one: no package brings it. */
export const findChromium = (): string | undefined => names.map(pathOf).find((path) => path !== undefined);

function pathOf(command: string): string | undefined {
  try {
    return execFileSync('sh', ['-c', `command -v ${command}`], { encoding: 'utf8' }).trim();
  } catch {
    return undefined;
  }
}

/** vitest's global setup of the project: says aloud that nothing of it will run. */
export function setup(): void {
  if (findChromium() === undefined)
    process.stderr.write(
      `\nSKIPPED: no test in a browser runs, for none of ${names.join(', ')} is on the PATH.\n\n`,
    );
}
