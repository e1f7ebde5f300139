import { randomUUID } from 'node:crypto';
import { Ajv } from 'ajv';
import { afterAll, describe, expect, it } from 'vitest';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import { promptCanary } from '../support/canaries.js';
import { startDeployment } from '../support/deployment.js';
import { tinyImages } from '../support/images.js';
import { askWithTools, callsIn, clockTool, functionTool, weatherTool } from '../support/tool-completions.js';

// What can be seen from outside of tools, schemas and images, at all providers, which hold each request to their rules.
// Requests that are refused before the queue are in `api/openai`, and a whole conversation is in `paths/chat`.

const deployment = await startDeployment({});
afterAll(deployment.stop);
const other = await deployment.startApi();

/** A model of this provider that nothing else asks for, as the simulator knows it. */
const modelOf = (behaviour: string) => `${behaviour}@${randomUUID()}`;
const callsOf = (model: string) => deployment.simulator.calls.list({ model });
// biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says.
const bodyOf = (model: string): any => callsOf(model).at(-1)?.body;

interface Ask {
  provider: ProviderId;
  behaviour?: string;
  headers?: Record<string, string>;
  [field: string]: unknown;
}

/** Asks a model that nothing else asks. */
async function ask({ provider, behaviour = 'sim-echo', headers = {}, ...fields }: Ask) {
  const model = modelOf(behaviour);
  const reply = await askWithTools(deployment, { model: `${provider}/${model}`, ...fields }, { headers });
  return { ...reply, model };
}

const tools = [weatherTool, clockTool];
const user = (content: unknown) => ({ role: 'user', content });
const called = (...ids: string[]) => ({
  ...{ role: 'assistant', content: null },
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'clock', arguments: '{}' } })),
});
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: `warm, ${promptCanary}` });
/** A conversation with results of calls whose ids come from elsewhere. */
const odd = ['é id/with:signs', 'x'.repeat(100), 'x'.repeat(101)];
const results = [user('Hello'), called(...odd), ...odd.map(result)];
const closed = (properties: object) => ({
  ...{ type: 'object', properties, required: Object.keys(properties) },
  additionalProperties: false,
});
const answerSchema = {
  ...closed({
    kind: { type: 'string', enum: ['yes', 'no'] },
    points: { type: 'array', items: { $ref: '#/$defs/point' } },
  }),
  $defs: { point: closed({ weight: { anyOf: [{ type: 'number' }, { type: 'null' }] } }) },
};
const json = { type: 'json_schema', json_schema: { name: 'answer', schema: answerSchema } };

const choose = { type: 'function', function: { name: 'clock' } };
type Row = [given: string, model: string, asked: object, seen: string[] | 'provider_error'];
/** The end that a caller sees: the names of the calls, or the code of the error. */
const rows: Row[] = [
  ['may call a tool', 'sim-tools', { tools, tool_choice: 'auto' }, ['weather']],
  ['has to call a tool', 'sim-tools', { tools, tool_choice: 'required' }, ['weather']],
  ['has to call a certain tool', 'sim-tools', { tools, tool_choice: choose }, ['clock']],
  ['must not call a tool', 'sim-tools', { tools, tool_choice: 'none' }, []],
  ['makes as many calls as a reply may have', 'sim-tools-128', { tools }, Array(128).fill('weather')],
  ['makes more calls', 'sim-tools-129', { tools }, 'provider_error'],
  ['calls a tool that was not offered', 'sim-tool-unknown', { tools }, 'provider_error'],
  ['calls with arguments that are no JSON', 'sim-tool-garbage', { tools }, 'provider_error'],
  ['calls without a name', 'sim-tool-nameless', { tools }, 'provider_error'],
  ['has a schema and replies without JSON', 'sim-format-broken', { response_format: json }, 'provider_error'],
  ['has results of odd ids', 'sim-echo', { tools, messages: results }, []],
  ['has results, and no tools', 'sim-echo', { messages: results }, []],
  ['has nothing to add to results', 'sim-null', { tools, messages: results }, []],
  ['has nothing to say to a question', 'sim-null', { tools }, 'provider_error'],
];
const modes = providerIds.flatMap((provider) =>
  [false, true].map((stream): [ProviderId, boolean] => [provider, stream]),
);
const hintOf = (ignored: string | null) => (ignored ?? '').split(', ').filter(Boolean);

it.each([false, true])(
  'a Claude at Bedrock that takes no marks of a cache (stream: %s) → is asked once more without',
  async (stream) => {
    const model = `sim-plain@claude-${randomUUID()}`;
    const asked = { model: `bedrock/${model}`, stream, tools };
    for (const calls of [2, 3]) {
      const { status, ignored } = await askWithTools(deployment, asked);
      expect([status, ignored, callsOf(model).length]).toEqual([200, null, calls]);
    }
    const marked = callsOf(model).map(({ body }) => JSON.stringify(body).includes('cachePoint'));
    expect(marked).toEqual([true, false, false]);
  },
);

describe.each(modes)('a completion of %s (stream: %s)', (provider, stream) => {
  it.each(rows)('%s (%s) → its calls, or an error', async (_, model, asked, seen) => {
    const reply = await ask({ provider, stream, behaviour: model, ...asked });
    if (typeof seen === 'string') {
      expect([reply.error?.code, reply.finish ?? null]).toEqual([seen, null]);
      if (!stream) expect(reply.status).toBe(502);
      return;
    }
    expect([reply.status, reply.finish]).toEqual([200, seen.length > 0 ? 'tool_calls' : 'stop']);
    expect(callsIn(reply).map(([name]) => name)).toEqual(seen);
    expect(new Set(reply.calls.map(({ id }) => id)).size).toBe(seen.length);
    for (const [name, input] of callsIn(reply))
      expect(input).toEqual(name === 'clock' ? {} : { city: expect.any(String), unit: 'celsius' });
  });

  it('has signed calls → gets the signatures back, and does without those that have changed', async () => {
    const model = modelOf('sim-tool-signed');
    const asked = { model: `${provider}/${model}`, stream, tools };
    const messages: object[] = [user('Hello')];
    for (let turn = 1; turn <= 3; turn += 1) {
      const { calls, status, finish } = await askWithTools(deployment, { ...asked, messages });
      expect([turn, status, finish]).toEqual([turn, 200, 'tool_calls']);
      const [call] = calls;
      expect(call?.extra_content).toBeDefined();
      messages.push({ role: 'assistant', content: null, tool_calls: calls });
      messages.push(result(call?.id ?? ''), user('And now?'));
      // A signature that was refused would cost a call more.
      expect(callsOf(model)).toHaveLength(turn);
    }
    const text = JSON.stringify(messages).replace(
      /(_signature":"|\\"(?:signature|data|redactedContent|encrypted_content)\\":\\")/g,
      '$1AAAA',
    );
    const changed = await askWithTools(deployment, { ...asked, messages: JSON.parse(text) });
    expect([changed.status, changed.finish]).toEqual([200, 'tool_calls']);
    expect(callsOf(model)).toHaveLength(5);
  });

  it('thinks before its texts and calls, over two loops → its thinking goes back in its place, and nothing is asked twice', async () => {
    const model = modelOf('sim-bound');
    const asked = { model: `${provider}/${model}`, stream, tools };
    const messages: object[] = [{ role: 'system', content: 'Be brief.' }, user('Hello')];
    for (const next of ['And now?', 'And then?']) {
      const { calls, content, finish } = await askWithTools(deployment, { ...asked, messages });
      expect([finish, calls.length]).toEqual(['tool_calls', 2]);
      messages.push({ role: 'assistant', content, tool_calls: calls });
      messages.push(...calls.map(({ id }) => result(id)));
      const answered = await askWithTools(deployment, { ...asked, messages });
      expect(answered).toMatchObject({ status: 200, finish: 'stop', calls: [] });
      messages.push({ role: 'assistant', content: answered.content }, user(next));
    }
    const signed = callsOf(model).map(
      ({ body }) =>
        JSON.stringify(body).match(/"(?:signature|thoughtSignature|encrypted_content)":/g)?.length ?? 0,
    );
    expect(signed).toEqual(signedTwice[provider]);
  });

  it('is cut by the token limit in a call → ends with length, and has what there is of the call', async () => {
    const cut = await ask({ provider, stream, behaviour: 'sim-tool-cut-12', tools });
    expect(cut).toMatchObject({ status: 200, finish: 'length', calls: [{ function: { name: 'weather' } }] });
  });

  it('has a schema → JSON that fits it', async () => {
    const reply = await ask({ provider, stream, response_format: json });
    expect(reply).toMatchObject({ status: 200, finish: 'stop', calls: [] });
    const validate = new Ajv().compile(answerSchema);
    expect(validate(JSON.parse(reply.content ?? '')), JSON.stringify(validate.errors)).toBe(true);
  });

  it('has hints that its model refuses → asked once more without them, and not again with one that was named', async () => {
    const model = modelOf('sim-no-hints');
    const asked = { model: `${provider}/${model}`, stream, ...hintsTaken[provider] };
    const ignored = Object.keys(hintsTaken[provider]);
    const first = await askWithTools(deployment, asked);
    expect([first.status, hintOf(first.ignored).toSorted()]).toEqual([200, ignored.toSorted()]);
    expect(callsOf(model)).toHaveLength(2);
    // Each refusal names one.
    for (const _ of ignored.slice(1)) await askWithTools(deployment, asked);
    const before = callsOf(model).length;
    const last = await askWithTools(deployment, asked);
    expect([last.status, hintOf(last.ignored).toSorted()]).toEqual([200, ignored.toSorted()]);
    expect(callsOf(model)).toHaveLength(before + 1);
    const strict = await askWithTools(deployment, asked, { headers: { Prefer: 'handling=strict' } });
    expect([strict.status, strict.error?.code]).toEqual([400, 'provider_rejected']);
    expect(callsOf(model)).toHaveLength(before + 2);
  });
});

/**
 * The signatures in each request of an agent that works in two loops. Gemini does not think before its text here.
 * A completion has no place for the thinking before a loop's last text, and so Claude's of that loop does not go back.
 */
const signedTwice: Record<ProviderId, number[]> = {
  openai: [0, 2, 2, 4],
  anthropic: [0, 2, 0, 2],
  bedrock: [0, 2, 0, 2],
  vertexai: [0, 1, 1, 2],
};

/** Hints that the provider takes, but that not each of its models does. */
const hintsTaken: Record<ProviderId, Record<string, unknown>> = {
  openai: { temperature: 0.2, reasoning_effort: 'low' },
  anthropic: { reasoning_effort: 'low' },
  bedrock: { temperature: 0.2, top_p: 0.5 },
  vertexai: { temperature: 0.2, seed: 7 },
};

describe('what only some providers can do', () => {
  it.each(['anthropic', 'bedrock'] as const)(
    'a model of %s thinks always → no forced choice',
    async (provider) => {
      const asked = { provider, behaviour: 'sim-always-thinks', tools };
      expect(await ask({ ...asked, tool_choice: 'required' })).toMatchObject({
        status: 400,
        error: { code: 'provider_rejected', param: 'tool_choice' },
      });
      expect((await ask(asked)).status).toBe(200);
    },
  );

  it('bedrock is given no choice where there are calls → has the tools, and may not call one', async () => {
    const asked = { provider: 'bedrock', behaviour: 'sim-tools', tools, tool_choice: 'none' } as const;
    const { model, error } = await ask({ ...asked, messages: [...results, user('And?')] });
    expect([bodyOf(model).toolConfig.tools.length, error?.code]).toEqual([2, 'provider_error']);
  });
});

describe('a fallback', () => {
  it.each([false, true])(
    'has tools and calls of before → the next provider gets them (stream: %s)',
    async (stream) => {
      const target = modelOf('sim-tools');
      const reply = await ask({
        ...{ provider: 'openai', behaviour: 'sim-status-500', stream, tools },
        messages: [...results, user('And the weather?')],
        headers: { 'X-LLM-Fallback': `vertexai/${target}` },
      });
      expect(reply).toMatchObject({ status: 200, finish: 'tool_calls' });
      expect(callsIn(reply).map(([name]) => name)).toEqual(['weather']);
      expect(bodyOf(target).contents).toHaveLength(4);
    },
  );

  it.each([false, true])(
    'has a hint that its model refuses → the hint is named (stream: %s)',
    async (stream) => {
      const headers = { 'X-LLM-Fallback': `vertexai/${modelOf('sim-no-hints')}` };
      const asked = { behaviour: 'sim-status-500', headers, stream, temperature: 0.2 };
      const reply = await ask({ provider: 'openai', ...asked });
      expect([reply.status, hintOf(reply.ignored)]).toEqual([200, ['temperature']]);
    },
  );
});

describe('a stored stream with arguments far longer than a message', () => {
  it('is read at another process while it is written → the same calls at both, of one call', async () => {
    const keyed = { headers: { 'Idempotency-Key': randomUUID() } };
    const behaviour = modelOf('sim-tool-slow-20-20');
    const text = '"ß🦉'.repeat(22_000);
    const long = functionTool('long', closed({ text: { type: 'string', enum: [text] } }));
    const asked = { model: `bedrock/${behaviour}`, tools: [long], stream: true };
    const begun = Promise.withResolvers<void>();
    const first = askWithTools(deployment, asked, { ...keyed, onText: () => begun.resolve() });
    await begun.promise;
    const [written, joined] = await Promise.all([first, askWithTools(other, asked, keyed)]);
    expect(written).toMatchObject({ status: 200, finish: 'tool_calls', calls: [{ type: 'function' }] });
    expect([joined.calls, joined.finish]).toEqual([written.calls, written.finish]);
    expect(callsIn(written)).toEqual([['long', { text }]]);
    expect(callsOf(behaviour)).toHaveLength(1);
  });
});

describe('an image', () => {
  const shown = (url: string) => ({
    messages: [
      user([
        { type: 'text', text: 'What is it?' },
        { type: 'image_url', image_url: { url } },
      ]),
    ],
  });
  const types = Object.entries(tinyImages).flatMap(([type, bytes]) =>
    providerIds.map((provider) => ({ type, bytes, provider })),
  );

  it.each(types)(
    'is $type, and says that it is PNG → reaches $provider as what it is',
    async ({ type, bytes, provider }) => {
      const data = Buffer.from(bytes).toString('base64');
      const { model, status, error } = await ask({ provider, ...shown(`data:image/png;base64,${data}`) });
      if (provider === 'vertexai' && type === 'image/gif') {
        expect([status, error?.param]).toEqual([400, expect.stringMatching(/^messages\[0\]\.content\[1\]/)]);
        return;
      }
      expect(status).toBe(200);
      const sent = JSON.stringify(bodyOf(model));
      expect(sent).toContain(data);
      expect(sent).toContain(provider === 'bedrock' ? type.replace('image/', '') : type);
    },
  );

  it('has an address → it is fetched by those who do that, and refused elsewhere', async () => {
    const url = 'https://images.example.org/owl.png';
    for (const provider of providerIds) {
      const { status, model } = await ask({ provider, ...shown(url) });
      const isFetched = provider === 'openai' || provider === 'anthropic';
      expect([provider, status]).toEqual([provider, isFetched ? 200 : 400]);
      if (isFetched) expect(JSON.stringify(bodyOf(model))).toContain(url);
    }
  });

  it('has an address at a host that is not allowed, for a provider at another address → 400, and no call', async () => {
    for (const provider of ['openai', 'anthropic'] as const) {
      const { status, error, model } = await ask({ provider, ...shown('https://other.example.org/owl.png') });
      expect([status, error?.param]).toEqual([400, 'messages']);
      expect(error?.message).toContain('that this provider may not fetch from');
      expect(deployment.simulator.calls.list({ model })).toEqual([]);
    }
  });
});
