import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ProviderId, providerIds } from '../../shared/contract.js';
import { authorization, type Deployment, startDeployment } from '../support/deployment.js';
import { profiles } from '../support/profiles.js';
import { askWithTools, callsIn, clockTool, weatherTool } from '../support/tool-completions.js';

let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({ variables: profiles.plain });
});
afterAll(() => deployment?.stop());

const tools = [weatherTool, clockTool];
const modes = providerIds.flatMap((provider) =>
  [false, true].map((stream): [ProviderId, boolean] => [provider, stream]),
);

/** The results that the provider was sent last, in the order of its calls, as texts. */
function resultsAt(model: string): unknown[] {
  const turns = deployment.simulator.calls.list({ model }).at(-1)?.turns ?? [];
  return turns.flatMap(({ content }) =>
    typeof content === 'string'
      ? []
      : content.flatMap((part) => (part.type === 'tool_result' ? [part.content] : [])),
  );
}

describe.each(modes)('a conversation with two calls at %s (stream: %s)', (provider, stream) => {
  it('is called, gets its results in the order of its calls, and is read again as a stored chat', async () => {
    const mark = randomUUID();
    const model = `sim-tools-parallel@${mark}`;
    const asked = { model: `${provider}/${model}`, stream, tools };
    const keyed = { headers: { 'Idempotency-Key': mark } };
    const called = await askWithTools(deployment, asked, keyed);
    expect([called.status, called.finish]).toEqual([200, 'tool_calls']);
    expect(callsIn(called)).toEqual([
      ['weather', { city: expect.any(String), unit: 'celsius' }],
      ['clock', {}],
    ]);

    const location = called.headers.get('content-location') ?? '';
    const stored = await fetch(new URL(location, deployment.url), {
      headers: { Authorization: authorization },
    });
    expect(await stored.json()).toMatchObject({
      ...{ status: 'completed', response: called.content, provider },
      completion: { choices: [{ message: { content: called.content, tool_calls: called.calls } }] },
    });
    const again = await askWithTools(deployment, asked, keyed);
    expect([again.headers.get('idempotency-replayed'), again.calls]).toEqual(['true', called.calls]);
    expect(deployment.simulator.calls.list({ model })).toHaveLength(1);

    const [weather, clock] = called.calls;
    const results = [
      { role: 'tool', tool_call_id: clock?.id, content: 'noon' },
      { role: 'tool', tool_call_id: weather?.id, content: 'sun' },
    ];
    const reading = `sim-echo@${mark}`;
    const answer = await askWithTools(deployment, {
      ...{ ...asked, model: `${provider}/${reading}` },
      messages: [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: called.content, tool_calls: called.calls },
        ...results,
      ],
    });
    expect(answer).toMatchObject({ status: 200, finish: 'stop', calls: [] });
    expect(resultsAt(reading)).toEqual(['sun', 'noon']);
  });
});
