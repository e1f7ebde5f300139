/**
 * Secret texts that must not leak. Every deployment gets them, and its `stop` fails the test if one was in a log, in an
 * answer, or in the metrics of a program.
 */

/** Part of every prompt that a test does not choose itself; allowed only in replies. */
export const promptCanary = 'canary-of-the-prompt-5772156649';

/** The programs' keys; the simulator accepts any. */
export const providerKeys = {
  OPENAI_API_KEY: 'canary-of-the-openai-key-1414213562',
  ANTHROPIC_API_KEY: 'canary-of-the-anthropic-key-1732050807',
  AWS_ACCESS_KEY_ID: 'CANARYOFTHEAWSKEYID2236067977',
  AWS_SECRET_ACCESS_KEY: 'canary-of-the-aws-secret-2645751311',
  GOOGLE_API_KEY: 'canary-of-the-google-key-3316624790',
};

/** Searches the answers and logs of one deployment for its canaries. */
export interface CanaryWatch {
  /** Searches an answer as soon as its body has arrived; does not delay it. */
  inspect(answer: Response): void;
  /** Resolves when all answers have been searched; throws when a canary was in one, or is in the logs. */
  finish(logs: string): Promise<void>;
}

/** `secrets` are those of the deployment beside the keys, including store URLs with passwords. */
export function watchForCanaries(secrets: string[]): CanaryWatch {
  const everywhere = [...secrets, ...Object.values(providerKeys)];
  const searches: Promise<string[]>[] = [];
  return {
    inspect: (answer) => void searches.push(search(answer, everywhere)),
    finish: async (logs) => {
      const inLogs = found([...everywhere, promptCanary], logs).map((canary) => `in a log: ${canary}`);
      const leaks = [...inLogs, ...(await Promise.all(searches)).flat()];
      if (leaks.length > 0) throw new Error(`Found what must not show:\n${leaks.join('\n')}`);
    },
  };
}

async function search(answer: Response, everywhere: string[]): Promise<string[]> {
  const copy = answer.clone();
  // The body of an aborted answer cannot be read.
  const text = await copy.text().catch(() => '');
  const { pathname } = new URL(answer.url);
  const mayHoldPrompt = answer.ok && pathname !== '/metrics';
  const forbidden = mayHoldPrompt ? everywhere : [...everywhere, promptCanary];
  const where = `in an answer with ${answer.status} of ${pathname}`;
  return found(forbidden, text + JSON.stringify([...answer.headers])).map((canary) => `${where}: ${canary}`);
}

const found = (canaries: string[], text: string): string[] =>
  canaries.filter((canary) => text.includes(canary));
