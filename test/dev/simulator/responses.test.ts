import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import { call, result, talk, written } from '../../support/apis.js';
import { type Asked, city, requestOf, send, type TestRequest } from './requests.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

type Json = Record<string, unknown>;
const kept = { include: ['reasoning.encrypted_content'] };

/** A request in the words of Responses; `more` are fields of the body. */
function responsesOf(asked: Asked = {}, more: Json = {}): TestRequest {
  const request = requestOf('responses', asked);
  return { ...request, body: { ...request.body, ...more } };
}

async function ask(request: TestRequest) {
  const response = await send(simulator.url, request);
  const text = await response.text();
  return { status: response.status, text };
}

/** Asks for a whole response: its fields, or those of an error and the status. */
async function whole(asked: Asked = {}, more: Json = {}) {
  const { status, text } = await ask(responsesOf(asked, more));
  const { output = [], ...body } = JSON.parse(text);
  return { status, ...body, output: output as Json[] };
}

/** Asks for a stream; its events, and the last of them. */
async function stream(asked: Asked = {}, more: Json = {}) {
  const { text } = await ask(responsesOf({ ...asked, stream: true }, more));
  const events = [...text.matchAll(/^event: (.+)\ndata: (.+)$/gm)].map(([, name, data = '']) => {
    const event = JSON.parse(data);
    expect(event.type).toBe(name);
    return event;
  });
  return { text, events, last: events.at(-1) };
}

const weather = { name: 'weather', parameters: city };

describe('a request', () => {
  it.each([
    [{ max_output_tokens: 15 }, 'max_output_tokens'],
    [{ text: { format: { type: 'json_object' } } }, 'input'],
    [{ model: undefined }, 'model'],
  ])('with %j -> is refused', async (more, place) => {
    const { status, error } = await whole({}, more as Json);
    expect([status, error.param]).toEqual([400, place]);
  });

  it('with a tool that says nothing of being strict -> has to name each property as required', async () => {
    const open = { type: 'object', properties: { city: { type: 'string' } }, additionalProperties: false };
    const asked = (strict: unknown) => whole({ tools: [{ ...weather, parameters: open, strict } as never] });
    for (const strict of [undefined, null, true])
      expect((await asked(strict)).error.message).toContain('city to be required');
    expect((await asked(false)).status).toBe('completed');
  });

  it('with fields beside the conversation -> is read in our words', async () => {
    const fields = { temperature: 1, max_output_tokens: 16, ...kept };
    expect((await ask(responsesOf({}, fields))).status).toBe(200);
    const { parameters } = simulator.calls.list().at(-1) ?? {};
    expect(parameters).toMatchObject({ maxOutputTokens: 16, temperature: 1, wantsReasoning: true });
  });
});

describe('a stream', () => {
  it('of a text -> has named, numbered events, ends with the whole response, and has no [DONE]', async () => {
    const { text, events, last } = await stream();
    const types = events.map(({ type }) => type);
    expect(types.slice(0, 4)).toEqual([
      ...['response.created', 'response.in_progress'],
      ...['response.output_item.added', 'response.content_part.added'],
    ]);
    expect(types.slice(-4)).toEqual([
      ...['response.output_text.done', 'response.content_part.done'],
      ...['response.output_item.done', 'response.completed'],
    ]);
    const numbers = events.map(({ sequence_number: number }) => number);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(new Set(numbers).size).toBe(numbers.length);
    const said = events.flatMap(({ type, delta }) => (type === 'response.output_text.delta' ? [delta] : []));
    expect(last.response).toMatchObject({ status: 'completed', usage: { input_tokens: expect.any(Number) } });
    expect(last.response.output[0].content[0].text).toBe(said.join(''));
    expect(text).not.toContain('[DONE]');
  });

  it.each([
    ['sim-length', 'incomplete', { reason: 'max_output_tokens' }],
    ['sim-blocked', 'incomplete', { reason: 'content_filter' }],
    ['sim-blocked-reply', 'incomplete', { reason: 'content_filter' }],
    ['sim-refused', 'completed', null],
    ['sim-empty', 'completed', null],
    ['sim-failed', 'failed', null],
  ])('of %s -> ends %s, as the whole response does', async (model, status, incomplete_details) => {
    const { last } = await stream({ model });
    expect(last).toMatchObject({ type: `response.${status}`, response: { status, incomplete_details } });
    expect(await whole({ model })).toMatchObject({ status: status, incomplete_details });
  });

  it('that goes wrong -> has an error in both forms by turns', async () => {
    const errors = [await stream({ model: 'sim-stream-error' }), await stream({ model: 'sim-stream-error' })];
    const shapes = errors.map(({ last: { type, code, error } }) => [
      type,
      code ?? error.code,
      error === undefined,
    ]);
    expect(shapes.toSorted()).toEqual([
      ['error', 'server_error', false],
      ['error', 'server_error', true],
    ]);
  });

  it('of a call -> has its name at once, its arguments in pieces, and all of it at its end', async () => {
    const { events } = await stream({ model: 'sim-tools', tools: [weather] });
    const [added] = events.filter(({ type }) => type === 'response.output_item.added');
    expect(added.item).toMatchObject({ type: 'function_call', name: 'weather', arguments: '' });
    const pieces = events.flatMap(({ type, delta }) => (type.endsWith('arguments.delta') ? [delta] : []));
    const [done] = events.filter(({ type }) => type === 'response.output_item.done');
    expect(done.item).toMatchObject({ call_id: added.item.call_id, arguments: pieces.join('') });
    expect(pieces.length).toBeGreaterThan(1);
  });
});

describe('reasoning', () => {
  const asked = { model: 'sim-bound', tools: [weather] };
  const next = (item: Json | undefined, model = asked.model) => {
    const [said, ...answered] = written('responses', talk([call('c1')], [result('c1')]));
    return whole({ ...asked, model }, { input: [said, item, ...answered] });
  };
  const thought = async (more: Json = kept) => {
    const { output } = await whole(asked, more);
    const [{ id, ...item } = {}] = output;
    return { id, item };
  };

  it('that comes back as it was, without its id -> is taken', async () => {
    const { item } = await thought();
    expect(item).toMatchObject({ type: 'reasoning', encrypted_content: expect.any(String), summary: [] });
    expect((await next(item)).status).toBe('completed');
  });

  it('that comes back with its id -> is not found', async () => {
    const { id, item } = await thought();
    const { error } = await next({ ...item, id });
    expect(error.message).toContain(`Item with id '${id}' not found. Items are not persisted`);
  });

  it.each([
    ['changed', (item: Json) => next({ ...item, encrypted_content: 'AAAA' })],
    [
      'beside another summary',
      (item: Json) => next({ ...item, summary: [{ type: 'summary_text', text: '' }] }),
    ],
    ['to another model', (item: Json) => next(item, 'sim-bound@other')],
    ['without its content', (item: Json) => next({ ...item, encrypted_content: null })],
  ])('that comes back %s -> is refused', async (_, send) => {
    const { item } = await thought();
    expect((await send(item)).error.code).toBe('invalid_encrypted_content');
  });

  it('that is not asked for -> is not encrypted, and has words only where a summary is asked for', async () => {
    expect((await thought({})).item).toMatchObject({ encrypted_content: null, summary: [] });
    const { item } = await thought({ ...kept, reasoning: { summary: 'auto' } });
    expect(item).toMatchObject({ summary: [{ type: 'summary_text' }] });
    expect((await next(item)).status).toBe('completed');
  });

  it('in a stream -> is whole at the end of its item alone', async () => {
    const { events } = await stream(asked, kept);
    const items = events.flatMap(({ type, item }) => (item?.type === 'reasoning' ? [[type, item]] : []));
    const [[, added], [, done]] = items as [[string, Json], [string, Json]];
    expect(String(done.encrypted_content).startsWith(String(added.encrypted_content))).toBe(true);
    expect(done.encrypted_content).not.toBe(added.encrypted_content);
  });

  it('asked of a model that does not think -> names `include` alone', async () => {
    const { error } = await whole({ model: 'sim-plain' }, kept);
    expect(error).toMatchObject({ param: 'include', code: null, type: 'invalid_request_error' });
    expect((await whole({ model: 'sim-plain' })).status).toBe('completed');
  });
});

it('a model without hints -> names them by their places', async () => {
  const model = 'sim-no-hints';
  expect((await whole({ model, effort: 'low' })).error.param).toBe('reasoning.effort');
  expect((await whole({ model }, { text: { verbosity: 'low' } })).error.param).toBe('text.verbosity');
});
