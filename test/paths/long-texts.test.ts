import { afterAll, describe, expect, it } from 'vitest';
import { providerIds } from '../../shared/contracts/contract.js';
import { partsOf } from '../../shared/conversation.js';
import { startDeployment } from '../support/deployment.js';
import { completionOf } from '../support/openai-requests.js';
import { profiles } from '../support/profiles.js';

const deployment = await startDeployment({ variables: profiles.plain });
afterAll(deployment.stop);

const text = 'Wo ist "雨"? \u0000\n'.repeat(150_000);
const messages = [
  { role: 'user', content: text },
  { role: 'assistant', content: 'There.' },
  { role: 'user', content: [{ type: 'text', text: `${text}!` }] },
];

describe('a chat of several MiB', () => {
  it.each(providerIds)(
    'with %s → its texts arrive as they were, and its fallback gets them too',
    async (id) => {
      const [model, other] = ['sim-echo@long', providerIds.find((each) => each !== id)];
      for (const first of [model, 'sim-status-500@long']) {
        const since = deployment.simulator.calls.lastId;
        const headers = { 'X-LLM-Fallback': `${other}/sim-echo@next` };
        const { status } = await completionOf(deployment, { model: `${id}/${first}`, messages }, headers);
        expect(status).toBe(200);
        const [call] = deployment.simulator.calls.list({ since }).toReversed();
        expect(call?.provider).toBe(first === model ? id : other);
        const said = (call?.turns ?? [])
          .flatMap(partsOf)
          .map((part) => (part.type === 'text' ? part.text : ''));
        expect(said.join('') === `${text}There.${text}!`).toBe(true);
      }
    },
  );
});
