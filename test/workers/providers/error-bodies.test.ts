import { afterAll, describe, expect, it } from 'vitest';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import { Failure } from '../../../shared/failures.js';
import { callErrorOf, describeFailure } from '../../../workers/providers/error-classification.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { ask } from '../../support/replies.js';
import { serve } from '../../support/serve.js';

/** A server that gives the answer that is set. */
const answer = { status: 0, body: '', type: 'application/json' };
const server = await serve((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(answer.status, { 'Content-Type': answer.type }).end(answer.body);
  });
});
afterAll(() => server.close());

async function failureOf(id: ProviderId, given: { status: number; body: unknown; stream?: boolean }) {
  const { stream = false, body, status } = given;
  const isEvent = stream && status === 200;
  const text = JSON.stringify(body);
  const type = isEvent ? 'text/event-stream' : 'application/json';
  Object.assign(answer, { status, type, body: isEvent ? `data: ${text}\n\n` : text });
  const setup = providerSetups.find((each) => each.id === id);
  const provider = await setup?.load(server.url);
  const failure = await ask(provider as NonNullable<typeof provider>, { model: 'm', stream }).catch(
    (error) => error,
  );
  provider?.close();
  expect(failure).toBeInstanceOf(Failure);
  return failure as Failure;
}

const tooLong = "This model's maximum context length is 4 tokens. However, you requested 9 tokens.";
const google = (error: object) => ({ error: { code: 400, status: 'INVALID_ARGUMENT', ...error } });
const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34s' }];
const limited = { code: 429, message: 'Quota exceeded', status: 'RESOURCE_EXHAUSTED', details };

describe.each(replyModes)('an error in the body: $mode', ({ stream }) => {
  const place = 'tools.0.custom.input_schema';
  const said = `${place}: JSON schema is invalid.`;
  it.each<[ProviderId, body: unknown, place: string]>([
    ['anthropic', { type: 'error', error: { type: 'invalid_request_error', message: said } }, place],
    ['bedrock', { message: `The model returned the following errors: ${said}` }, place],
    [
      'vertexai',
      google({ message: '* GenerateContentRequest.tools[0].function_declarations[0]: no' }),
      'tools[0].function_declarations[0]',
    ],
    [
      'vertexai',
      google({
        message: 'Unknown name "secret"',
        details: [
          {},
          { fieldViolations: [{ field: 'tools[0].function_declarations[1].parameters.secret' }] },
        ],
      }),
      'tools[0].function_declarations[1].parameters',
    ],
    [
      'openai',
      { error: { message: "Invalid schema for function 'secret'", param: 'tools[0].function.parameters' } },
      'tools[0].function.parameters',
    ],
  ])('%s says %j -> the log has the place, and no text', async (id, body, expected) => {
    const failure = await failureOf(id, { status: 400, body, stream });
    expect(describeFailure(failure)).toMatchObject({ code: 'provider_rejected', place: expected });
    expect(JSON.stringify([describeFailure(failure), failure])).not.toContain('secret');
  });

  it.each<[ProviderId, number, unknown]>([
    ['anthropic', 413, { type: 'error', error: { type: 'request_too_large', message: 'Request too large' } }],
    ['bedrock', 400, { message: tooLong }],
    [
      'vertexai',
      400,
      google({ message: 'The input token count (9) exceeds the maximum number of tokens allowed (4).' }),
    ],
    ['openai', 400, { object: 'error', message: tooLong, type: 'BadRequestError', param: null, code: 400 }],
    ['openai', 400, { error: tooLong }],
    ['openai', 400, { error: { code: 400, message: 'no', type: 'exceed_context_size_error', n_ctx: 4 } }],
    [
      'openai',
      400,
      [google({ message: 'The input token count (9) exceeds the maximum number of tokens allowed (4).' })],
    ],
  ])('%s answers %i with %j -> it is too long', async (id, status, body) => {
    expect((await failureOf(id, { status, body, stream })).code).toBe('context_length_exceeded');
  });

  it.each<[ProviderId, unknown]>([
    ['vertexai', { error: limited }],
    ['openai', { error: limited }],
    ['openai', [{ error: limited }]],
  ])('%s limits with %j -> the time is that of the body', async (id, body) => {
    const failure = await failureOf(id, { status: 429, body, stream });
    expect([failure.code, failure.facts.retryAfterMs]).toEqual(['provider_rate_limited', 34_000]);
  });

  const says: Record<ProviderId, (message: string) => object> = {
    openai: (message) => ({ error: { message, type: 'invalid_request_error', param: null, code: null } }),
    anthropic: (message) => ({ type: 'error', error: { type: 'invalid_request_error', message } }),
    bedrock: (message) => ({ message: `The model returned the following errors: ${message}` }),
    vertexai: (message) => google({ message }),
  };
  it.each(providerIds)(
    '%s refuses a hint -> it is read from its own words, not from what they quote',
    async (id) => {
      const refusal = '`temperature` is deprecated for this model.';
      const own = await failureOf(id, { status: 400, body: says[id](refusal), stream });
      expect(callErrorOf(own)?.refusal).toEqual(['temperature']);
      for (const quote of [`Cannot read "${refusal}"`, `Cannot load https://a.example/${refusal}`]) {
        const quoting = await failureOf(id, { status: 400, body: says[id](quote), stream });
        expect([quoting.code, callErrorOf(quoting)?.refusal]).toEqual(['provider_rejected', undefined]);
      }
    },
  );

  it.each(providerIds)('%s answers with fields of other types -> it is refused all the same', async (id) => {
    const error = { message: { text: 'no' }, type: 7, param: 3, code: [], details: {}, status: {} };
    const failure = await failureOf(id, { status: 400, body: { error, type: [], message: 4 }, stream });
    expect([failure.code, callErrorOf(failure)?.refusal]).toEqual(['provider_rejected', undefined]);
  });

  const choice = { index: 0, finish_reason: 'error', message: {}, delta: {} };
  it.each<[unknown, string, object]>([
    [{ error: limited }, 'provider_rate_limited', { retryAfterMs: 34_000 }],
    [{ error: { code: '429', message: 'no' } }, 'provider_rate_limited', {}],
    [{ choices: [{ ...choice, error: { code: 429, message: 'no' } }] }, 'provider_rate_limited', {}],
    [{ choices: [{ ...choice, error: { code: 400, message: tooLong } }] }, 'context_length_exceeded', {}],
    [{ error: { code: 402, message: 'no' } }, 'provider_rejected', {}],
    [{ error: { code: 502, message: 'no' } }, 'provider_error', {}],
    [{ error: { code: 'rate_limit_exceeded', message: 'no' } }, 'provider_rate_limited', {}],
    [{ error: { code: 7 } }, 'provider_error', {}],
    [{ error: 'no' }, 'provider_error', {}],
  ])('200 with %j -> %s, as its status would have said', async (body, code, facts) => {
    const failure = await failureOf('openai', { status: 200, body, stream });
    expect([failure.code, failure.facts]).toMatchObject([code, facts]);
  });
});
