import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { type Deployment, startDeployment } from '../support/deployment.js';

const apiKey = 'canary-of-the-chat-token-1618033988';
let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({ variables: { CHAT_TOKEN: apiKey } });
});
afterAll(() => deployment.stop());

/** Runs a program of docs/tools.md, and gives the text that it prints. */
async function run(program: string, model: string, ...args: string[]): Promise<string> {
  const env = {
    ...process.env,
    ...{ OPENAI_BASE_URL: `${deployment.url}/v1`, OPENAI_API_KEY: apiKey, MODEL: model },
  };
  const { stdout } = await promisify(execFile)(process.execPath, [`test/tools-page/${program}`, ...args], {
    env,
  });
  return stdout;
}

describe('the programs of docs/tools.md', () => {
  it.each(['openai.mjs', 'ai-sdk.mjs', 'langchain.mjs'])(
    'call a tool and get a reply that knows its result: %s',
    async (program) => {
      expect(await run(program, 'anthropic/sim-tools')).toContain('It is sunny in ');
    },
  );

  it.each(providerIds)('read an answer of %s by its schema', async (provider) => {
    expect(await run('schema.mjs', `${provider}/sim-echo`)).toMatch(/^(Germany|France)\n$/);
  });

  it('send an image', async () => {
    const reply = await run('image.mjs', 'bedrock/sim-echo', 'docs/images/console-pool.png');
    expect(reply).toContain('What is in this picture?');
  });
});
