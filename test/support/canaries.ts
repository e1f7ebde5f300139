/**
 * Texts that must never show where they do not belong. Every deployment is given them, and its `stop` fails the test that
 * stops it when one was in a log, in an answer, or in the metrics of a program.
 */

/** In every prompt that a test does not choose itself; belongs into replies alone. */
export const promptCanary = 'canary-of-the-prompt-5772156649';

/** Given to the programs; the simulator takes any. */
export const providerKeys = {
  OPENAI_API_KEY: 'canary-of-the-openai-key-1414213562',
  ANTHROPIC_API_KEY: 'canary-of-the-anthropic-key-1732050807',
  AWS_ACCESS_KEY_ID: 'CANARYOFTHEAWSKEYID2236067977',
  AWS_SECRET_ACCESS_KEY: 'canary-of-the-aws-secret-2645751311',
  GOOGLE_API_KEY: 'canary-of-the-google-key-3316624790',
};

/** Looks for the canaries of one deployment. */
export interface CanaryWatch {
  /** Looks at an answer as soon as its body is there; does not hold it up. */
  note(answer: Response): void;
  /** Resolves when all answers have been looked at; throws when a canary was in one, or is in the logs. */
  finish(logs: string): Promise<void>;
}

/** The secrets are those that the deployment has beside the keys; the addresses of stores with passwords are some, too. */
export function watchForCanaries(secrets: string[]): CanaryWatch {
  const everywhere = [...secrets, ...Object.values(providerKeys)];
  const looks: Promise<string[]>[] = [];
  return {
    note: (answer) => void looks.push(look(answer, everywhere)),
    finish: async (logs) => {
      const inLogs = found([...everywhere, promptCanary], logs).map((canary) => `in a log: ${canary}`);
      const heartbeats = [...inLogs, ...(await Promise.all(looks)).flat()];
      if (heartbeats.length > 0) throw new Error(`Found what must not show:\n${heartbeats.join('\n')}`);
    },
  };
}

async function look(answer: Response, everywhere: string[]): Promise<string[]> {
  const copy = answer.clone();
  // What was cut off in the middle has nothing more to show.
  const text = await copy.text().catch(() => '');
  const { pathname } = new URL(answer.url);
  const mayHoldPrompt = answer.ok && pathname !== '/metrics';
  const forbidden = mayHoldPrompt ? everywhere : [...everywhere, promptCanary];
  const where = `in an answer with ${answer.status} of ${pathname}`;
  return found(forbidden, text + JSON.stringify([...answer.headers])).map((canary) => `${where}: ${canary}`);
}

const found = (canaries: string[], text: string): string[] =>
  canaries.filter((canary) => text.includes(canary));
