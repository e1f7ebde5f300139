import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { addUser } from '../support/accounts.js';
import { authorization, startDeployment } from '../support/deployment.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';
import { serve } from '../support/serve.js';
import { askWithTools, functionTool, weatherTool } from '../support/tool-completions.js';

interface Sent {
  tools?: unknown[];
  temperature?: number;
  reasoning_effort?: string;
}

/** The bodies that the providers have got, and the error that each is answered with; undefined is a reply. */
let sent: Sent[] = [];
let refusal: (body: string) => object | undefined = () => undefined;
const provider = await serve(async (request, response) => {
  const body = await readText(request);
  sent.push(JSON.parse(body));
  const error = refusal(body);
  if (error) response.writeHead(400, { 'Content-Type': 'application/json' });
  else response.setHeader('Content-Type', 'text/event-stream');
  // A reply that may take long is asked for as a stream.
  const chunk = { choices: [{ delta: { content: 'Hi' }, finish_reason: 'stop' }] };
  response.end(
    error ? JSON.stringify({ type: 'error', error }) : `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`,
  );
});

afterAll(() => provider.close());
const addresses = { OPENAI_BASE_URL: `${provider.url}/v1`, ANTHROPIC_BASE_URL: provider.url };
const variables = { ...profiles.plain, ...addresses, OPENAI_WIRE: 'chat' };
const deployment = await startDeployment({ variables });
afterAll(deployment.stop);
const others = await addUser(deployment, 'another');
beforeEach(() => {
  sent = [];
});

const hinted = { model: 'openai/sim-echo', tools: [weatherTool], temperature: 0.5 };
const ask = (body: object, Authorization = authorization) =>
  askWithTools(deployment, body, { headers: { Authorization } });
/** Quotes the text of the user, unless that is the usual one. */
const quote = (body: string) => {
  const text = JSON.parse(body).messages.at(-1).content;
  return text === 'Hello' ? undefined : { message: `Cannot read "${text}".`, type: 'invalid_request_error' };
};

describe('a refusal that one user brings about', () => {
  it.each(["Please set reasoning_effort to 'none'.", '`temperature` is deprecated for this model.'])(
    'by a text that the provider quotes, %s → changes no call of another',
    async (content) => {
      refusal = quote;
      const refused = await ask({ ...hinted, messages: [{ role: 'user', content }] }, others);
      expect([refused.status, refused.error?.code]).toEqual([400, 'provider_rejected']);
      expect(sent).toHaveLength(1);
      sent = [];
      for (const user of [authorization, others]) expect((await ask(hinted, user)).status).toBe(200);
      for (const body of sent) {
        expect(body).toMatchObject({ temperature: 0.5, tools: [expect.anything()] });
        expect(body).not.toHaveProperty('reasoning_effort');
      }
    },
  );

  it('and that is mended without the part → is remembered for that user alone', async () => {
    const says = "To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
    refusal = (body) =>
      body.includes('"reasoning_effort":"none"') ? undefined : { message: says, param: 'reasoning_effort' };
    expect((await ask(hinted, others)).status).toBe(200);
    expect(sent.map(({ reasoning_effort: effort }) => effort)).toEqual([undefined, 'none']);
    refusal = (body) =>
      body.includes('"reasoning_effort":"none"')
        ? { message: "Unsupported value: 'none'", param: 'reasoning_effort' }
        : undefined;
    sent = [];
    expect((await ask(hinted)).status).toBe(200);
    expect(sent).toHaveLength(1);
    // The first user's is forgotten with the first call that fails because of it.
    expect((await ask(hinted, others)).status).toBe(200);
    expect((await ask(hinted, others)).status).toBe(200);
    expect(sent.slice(1).map(({ reasoning_effort: effort }) => effort)).toEqual([
      'none',
      undefined,
      undefined,
    ]);
  });
});

describe('a schema', () => {
  const claude = { model: 'bedrock/sim-tools@drafts' };
  const toolOf = (field: object, name = 'field') => [
    functionTool('draw', { type: 'object', properties: { [name]: field } }),
  ];

  it('of an older draft → reaches Claude as one of 2020-12', async () => {
    const point = {
      type: 'array',
      minItems: 2,
      maxItems: 2,
      items: [{ type: 'number' }, { type: 'number' }],
    };
    const size = { type: 'number', minimum: 0, exclusiveMinimum: true, required: true };
    const tools = [functionTool('draw', { type: 'object', properties: { point, size } })];
    const { status, calls } = await ask({ ...claude, tools });
    expect([status, calls.length]).toEqual([200, 1]);
    const { items, ...list } = point;
    expect(
      deployment.simulator.calls.list({ model: 'sim-tools@drafts' }).at(-1)?.parameters?.tools,
    ).toMatchObject([
      {
        parameters: {
          ...{ type: 'object', required: ['size'] },
          properties: {
            point: { ...list, prefixItems: items },
            size: { type: 'number', exclusiveMinimum: 0 },
          },
        },
      },
    ]);
  });

  it.each([
    [toolOf({ type: 'decimal' }), 'field.type'],
    [
      toolOf({ type: 'object', properties: { $top: { type: 'any', minimum: '1' } } }),
      'field.properties.$top.minimum',
    ],
    [toolOf({ type: 'number' }, 'first name'), 'first name'],
  ])('that Claude refuses, %j → 400 with the place, and no call', async (tools, place) => {
    const since = deployment.simulator.calls.lastId;
    const { status, error } = await ask({ ...claude, tools });
    expect([status, error?.code]).toEqual([400, 'invalid_request']);
    expect(error?.param).toBe(`tools[0].function.parameters.properties.${place}`);
    expect(deployment.simulator.calls.list({ since })).toEqual([]);
  });

  it('that only the provider finds wrong → its place reaches caller and log, and no word of the caller', async () => {
    const place = 'tools.0.custom.input_schema.properties';
    refusal = () => ({
      type: 'invalid_request_error',
      message: `${place}.canary-of-a-name.pattern: 'x' is no pattern`,
    });
    const log = deployment.logsFromNow();
    const { status, error } = await ask({ model: 'anthropic/sim-echo', tools: toolOf({ pattern: 'x' }) });
    expect({ status, ...error }).toMatchObject({ status: 400, code: 'provider_rejected', param: place });
    expect(error?.message).toContain(place);
    await vi.waitFor(() => expect(log()).toContain(`"place":"${place}"`), patience);
    expect(log() + JSON.stringify(error)).not.toContain('canary-of-a-name');
  });
});
