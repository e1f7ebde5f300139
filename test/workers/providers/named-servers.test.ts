import { readFileSync } from 'node:fs';
import { text as readText } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { type JsonObject, readObject } from '../../../shared/json/json.js';
import type { Call, PreparedCall } from '../../../workers/job/call.js';
import { prepare } from '../../../workers/job/call-chain.js';
import type { ModelRequest } from '../../../workers/job/model-request.js';
import { RefusedParts } from '../../../workers/job/refused-parts.js';
import { RetryBudget, withOneRetry } from '../../../workers/job/retry.js';
import { callOf, pass } from '../../support/calls.js';
import { providerSetups } from '../../support/providers.js';
import { openStream } from '../../support/running-jobs.js';
import { type Served, serve } from '../../support/serve.js';

/** The refusals of the servers that docs/deploying.md names, in their own words, and what becomes of a request. */

type Refusal = [status: number, body: unknown];
interface Row {
  server: string;
  refuses: string;
  asked?: Partial<ModelRequest>;
  refuse: (body: JsonObject) => Refusal | undefined;
  /** The bodies that it is sent, the last of which is answered; or the failure. */
  gives: object[] | { code: string };
}

const forbidden = (name: string) => ({
  ...{ type: 'extra_forbidden', loc: ['body', name], msg: 'Extra inputs are not permitted', input: 7 },
});
const id = 'call_0fypS1hVX';
const called: ModelRequest['turns'] = [
  { role: 'user', content: 'Hello' },
  { role: 'assistant', content: [{ type: 'tool_call', id, name: 'f', arguments: '{}' }] },
  { role: 'user', content: [{ type: 'tool_result', callId: id, content: '1' }] },
];
const idsIn = (body: JsonObject): string[] =>
  [...JSON.stringify(body).matchAll(/"(?:tool_call_id|id)":"(\w+)"/g)].map(([, found]) => String(found));
const tools = { parameters: { tools: [{ name: 'f' }] } };
const invalid = { type: 'invalid_request_error', param: null, code: null };
const refused = { code: 'provider_rejected' };
const sayError = (message: string, more: object = invalid) => ({ error: { message, ...more } });

const rows: Row[] = [
  // https://github.com/editor-code-assistant/eca/issues/231, https://github.com/Gitlawb/openclaude/issues/739
  ...[
    (detail: object[]) => ({ object: 'error', message: { detail }, ...invalid }),
    (detail: object[]) => ({ detail }),
    (detail: object[]) => ({ object: 'error', message: JSON.stringify({ detail }), ...invalid }),
  ].flatMap((say): Row[] =>
    (['max_tokens', 'stream_options'] as const).map((name) => ({
      server: 'Mistral',
      refuses: `a field that it does not know, such as ${name}`,
      refuse: (body) => (name in body ? [422, say([forbidden(name)])] : undefined),
      gives: [{ [name]: expect.anything() }, { stream: true }],
    })),
  ),
  {
    server: 'Mistral',
    refuses: 'a hint that it does not know',
    asked: { parameters: { seed: 7 } },
    refuse: (body) => ('seed' in body ? [422, { detail: [forbidden('seed')] }] : undefined),
    gives: [{ seed: 7 }, { stream: true }],
  },
  // https://github.com/anomalyco/opencode/issues/1680
  {
    server: 'Mistral',
    refuses: 'ids of calls that are not nine letters and digits',
    asked: { turns: called },
    refuse: (body) => {
      const message = `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`;
      const areFit = idsIn(body).every((each) => /^[a-zA-Z0-9]{9}$/.test(each));
      return areFit ? undefined : [400, { message, ...invalid }];
    },
    gives: [{}, {}],
  },
  // It passes over the newer name: https://github.com/ollama/ollama/issues/7125
  {
    server: 'Ollama',
    refuses: 'the newer name of the limit, without a word',
    refuse: () => undefined,
    gives: [{ max_tokens: 1 }],
  },
  // https://github.com/simonw/llm-llama-server/issues/3
  {
    server: 'llama.cpp',
    refuses: 'streams beside tools',
    asked: tools,
    refuse: ({ stream }) =>
      stream
        ? [500, sayError('Cannot use tools with stream', { code: 500, type: 'server_error' })]
        : undefined,
    gives: [{ stream: true }, { tools: [expect.anything()] }],
  },
  // https://github.com/can1357/llm-git/issues/13
  {
    server: 'LM Studio',
    refuses: 'the choice of one tool',
    asked: { parameters: { ...tools.parameters, toolChoice: { name: 'f' } } },
    refuse: () => [
      400,
      { error: "Invalid tool_choice type: 'object'. Supported string values: none, auto, required" },
    ],
    gives: refused,
  },
  // https://github.com/earendil-works/pi/issues/3636
  {
    server: 'DeepSeek',
    refuses: 'calls without their reasoning',
    asked: { turns: called },
    refuse: (body) =>
      JSON.stringify(body).includes('reasoning_content')
        ? undefined
        : [400, sayError('The `reasoning_content` in the thinking mode must be passed back to the API.')],
    gives: [{}, {}],
  },
  // https://github.com/llm-exe/llm-exe/issues/662
  {
    server: 'DeepSeek',
    refuses: 'JSON by a schema',
    asked: { parameters: { format: { type: 'json_schema', name: 'n', schema: {} } } },
    refuse: () => [400, sayError('This response_format type is unavailable now')],
    gives: refused,
  },
  // https://github.com/evalstate/fast-agent/issues/122
  {
    server: 'OpenRouter',
    refuses: 'tools for a model without them',
    asked: tools,
    refuse: () => [404, sayError('No endpoints found that support tool use.', { code: 404 })],
    gives: refused,
  },
  // https://github.com/vllm-project/vllm/issues/9986
  {
    server: 'vLLM',
    refuses: 'tools, unless it was started for them',
    asked: tools,
    refuse: () => [
      400,
      {
        object: 'error',
        message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        ...{ type: 'BadRequestError', param: null, code: 400 },
      },
    ],
    gives: refused,
  },
  // Of servers without streams, whose names are not known.
  ...[
    sayError('Streaming is not supported for this model.'),
    sayError('no', { type: 'invalid_request_error', param: 'stream' }),
    sayError("Unsupported value: 'stream' does not support true with this model.", {}),
    { detail: [{ type: 'literal_error', loc: ['body', 'stream'], msg: 'Input should be False' }] },
  ].flatMap((body) =>
    [400, 404, 422].map(
      (status): Row => ({
        server: 'any',
        refuses: `streams, by ${status} and ${JSON.stringify(body)}`,
        refuse: ({ stream }) => (stream ? [status, body] : undefined),
        gives: [{ stream: true }, { max_tokens: 1 }],
      }),
    ),
  ),
];

const whole = { choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] };
let server: Served | undefined;
afterEach(() => server?.close());

/** Makes two requests of a server that refuses like this, and gives their ends and the bodies of each. */
async function run({ refuse, asked }: Row) {
  const bodies: JsonObject[] = [];
  server = await serve(async (request, response) => {
    const body = readObject(await readText(request)) ?? {};
    bodies.push(body);
    const [status, said] = refuse(body) ?? [200, whole];
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(said));
  });
  const setup = providerSetups.find(({ name }) => name === 'openai by chat completions');
  const provider = await setup?.load(server.url);
  if (!provider) throw new Error('there is no such adapter');
  const deps = {
    gate: { heldMs: () => 0 },
    refused: new RefusedParts(),
    budget: new RetryBudget(),
    provider,
    sleep: async () => {},
  };
  const { signal } = new AbortController();
  const attempt = ({ sent }: PreparedCall) => provider.run({ ...sent, signal }, () => {});
  const request: ModelRequest = {
    ...{ model: 'm', maxOutputTokens: 1, turns: [{ role: 'user', content: 'Hello' }] },
    ...asked,
  };
  const once = async () => {
    const call = callOf({ request, deltas: openStream() });
    const make = (each: Call) => prepare({ ...each, pass }, deps, attempt);
    const end = await withOneRetry(call, deps, make).catch((error: unknown) => error);
    return { end, sent: bodies.splice(0) };
  };
  const both = [await once(), await once()] as const;
  provider.close();
  return both;
}

describe('a server', () => {
  it.each(rows)(
    '$server that refuses $refuses -> is asked as it wants, and at once the next time',
    async (row) => {
      const [first, second] = await run(row);
      if (!Array.isArray(row.gives)) {
        expect(first.end).toMatchObject(row.gives);
        return expect(first.sent).toHaveLength(1);
      }
      expect(first.end).toMatchObject({ text: 'Hello' });
      expect(first.sent).toMatchObject(row.gives);
      expect(second.end).toMatchObject({ text: 'Hello' });
      expect(second.sent).toEqual(first.sent.slice(-1));
      const ids = idsIn(second.sent[0] ?? {});
      expect(new Set(ids).size).toBeLessThanOrEqual(1);
    },
  );

  it('that the pages name -> has a row', () => {
    const page = readFileSync(new URL('../../../docs/deploying.md', import.meta.url), 'utf8');
    const [, section = ''] = page.split('## Other servers that speak');
    const named = [...(section.split('\n## ')[0]?.matchAll(/^\| (?!server )([\w. ]+) \|/gm) ?? [])];
    const names = new Set(named.map(([, name]) => name));
    expect(names).toEqual(new Set(rows.map((row) => row.server).filter((name) => name !== 'any')));
    for (const name of names) expect(section).toContain(`${name}`);
  });
});
