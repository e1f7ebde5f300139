import { Ajv } from 'ajv';
import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import { fitSchema } from '../../../shared/models/json-schema.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { type RandomSchema, randomSchemas } from '../../support/random-schemas.js';
import { ask, callsOf } from '../../support/replies.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const perRequest = 25;
const schemas = randomSchemas(2 * perRequest);
const ajv = new Ajv({ strict: false, allErrors: true, ownProperties: true, logger: false });
const checks = new Map<string, ReturnType<Ajv['compile']>>();

/** Fails for JSON that does not fit the schema. */
function expectFit(schema: RandomSchema, value: unknown): void {
  const key = JSON.stringify(schema);
  const check = checks.get(key) ?? ajv.compile(schema);
  checks.set(key, check);
  expect(check(value) ? undefined : { schema, value, errors: check.errors }).toBeUndefined();
}

const setups = providerSetups.filter(({ name }) => name !== 'vertexai in a project');

describe.each(setups)('$name', async ({ id, load }) => {
  const provider = await load(simulator.url);
  afterAll(() => provider.close());

  it.each(replyModes)(
    'declares schemas of many shapes, and is called as they say: $mode',
    async ({ stream }) => {
      // Each is declared once.
      const batch = stream ? schemas.slice(perRequest) : schemas.slice(0, perRequest);
      const tools = batch.map((parameters, n) => ({ name: `tool_${n}`, parameters }));
      const since = simulator.calls.lastId;
      const reply = await ask(provider, { model: 'sim-tools-parallel', stream, parameters: { tools } });
      const declared = simulator.calls.list({ since })[0]?.parameters?.tools ?? [];
      const called = callsOf(reply);
      expect(called.map(({ name }) => name)).toEqual(tools.map(({ name }) => name));
      batch.forEach((schema, n) => {
        const fitted = fitSchema(id, schema, 'tool');
        const sent = declared[n]?.parameters ?? {};
        const given = JSON.parse(called[n]?.arguments ?? '');
        expect(sent).toEqual(fitted.schema);
        expectFit(sent, given);
        if (fitted.moved.length === 0) expectFit(schema, given);
      });
    },
  );

  it('takes tools and formats with the schemas of programs that Gemini alone refuses', async () => {
    const properties = {
      labels: { type: 'array' },
      fields: { type: 'array', items: { type: 'object', required: ['name'], additionalProperties: false } },
      state: {
        anyOf: [
          { type: 'string', enum: ['', 'open'] },
          { type: 'string', const: '' },
        ],
      },
      kind: { $ref: '#/$defs/kind' },
    };
    const $defs = { kind: { type: 'string', enum: [] } };
    const schema = {
      type: 'object',
      properties,
      required: ['kind', 'owner'],
      additionalProperties: false,
      $defs,
    };
    const tools = [{ name: 'list_issues', parameters: schema }];
    const format = { type: 'json_schema', name: 'answer', schema } as const;
    for (const parameters of [{ tools }, { format }])
      await expect(ask(provider, { model: 'sim-echo', stream: false, parameters })).resolves.toBeDefined();
  });

  it('is asked for JSON by schemas of many shapes', async () => {
    for (const [n, schema] of schemas.slice(0, 20).entries()) {
      const format = { type: 'json_schema', name: 'answer', schema } as const;
      const { text } = await ask(provider, {
        model: 'sim-echo',
        stream: n % 2 === 0,
        parameters: { format },
      });
      const sent = simulator.calls.list().at(-1)?.parameters?.format?.schema ?? {};
      expectFit(sent, JSON.parse(text));
    }
  });
});
