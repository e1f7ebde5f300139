import { Presets, SingleBar } from 'cli-progress';

/** How far a command has come. */
export interface Progress {
  advance(): void;
  /** Takes the bar away; what came of it all is for the command to say. */
  stop(): void;
}

/** Shows a bar on standard error when that is a terminal, and nothing otherwise. */
export function showProgress(total: number): Progress {
  if (!process.stderr.isTTY) return { advance: () => undefined, stop: () => undefined };
  const bar = new SingleBar(
    {
      format: '{bar} {value}/{total} posts, {eta_formatted} left',
      stream: process.stderr,
      clearOnComplete: true,
      // Its handler of signals would keep the first Ctrl-C from ending the program.
      gracefulExit: false,
      linewrap: null,
    },
    Presets.shades_classic,
  );
  bar.start(total, 0);
  return { advance: () => bar.increment(), stop: () => bar.stop() };
}
