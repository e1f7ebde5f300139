import { describe, expect, it } from 'vitest';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import { Failure } from '../../../shared/failures.js';
import { type PlayedAnswer, startPlaying } from '../../support/playing-provider.js';
import { replyModes } from '../../support/providers.js';

/** Where each adapter finds the parts of an error. Their meaning is the matter of error-classification.test.ts. */

const { play } = await startPlaying();

const place = 'tools.0.custom.input_schema';
const tooLong = "This model's maximum context length is 4 tokens. However, you requested 9 tokens.";
const deprecated = '`temperature` is deprecated for this model.';
const google = (error: object) => ({ error: { code: 400, status: 'INVALID_ARGUMENT', ...error } });
const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34s' }];
const limited = { code: 429, message: 'Quota exceeded', status: 'RESOURCE_EXHAUSTED', details };
const fieldViolations = [{ field: 'tools[0].function_declarations[1].parameters.secret' }];
const ofOtherTypes = { message: { text: 'no' }, type: 7, param: 3, code: [], details: {}, status: {} };
const choice = { index: 0, finish_reason: 'error', message: {}, delta: {} };

const says: Record<ProviderId, (message: string) => object> = {
  openai: (message) => ({ error: { message, type: 'invalid_request_error', param: null, code: null } }),
  anthropic: (message) => ({ type: 'error', error: { type: 'invalid_request_error', message } }),
  bedrock: (message) => ({ message: `The model returned the following errors: ${message}` }),
  vertexai: (message) => google({ message }),
};

const rejected = { code: 'provider_rejected' };
const isLimited = { code: 'provider_rate_limited' };
const waits = { ...isLimited, facts: { retryAfterMs: 34_000 } };
const isTooLong = { code: 'context_length_exceeded', facts: { contextTokens: 4 } };

type Row = [ProviderId, status: number, body: unknown, gives: object];
const rows: Row[] = [
  ...providerIds.flatMap((id): Row[] => [
    [id, 400, says[id](deprecated), { ...rejected, cause: { refusal: ['temperature'] } }],
    [id, 400, says[id](`${place}: secret is invalid.`), { ...rejected, cause: { place } }],
    [id, 400, says[id](tooLong), isTooLong],
    [id, 400, { error: ofOtherTypes, type: [], message: 4 }, { ...rejected, cause: { refusal: undefined } }],
  ]),
  [
    'vertexai',
    400,
    google({ message: 'Unknown name "secret"', details: [{}, { fieldViolations }] }),
    { ...rejected, cause: { place: 'tools[0].function_declarations[1].parameters' } },
  ],
  [
    'openai',
    400,
    { error: { message: "Invalid schema for function 'secret'", param: 'tools[0].function.parameters' } },
    { ...rejected, cause: { place: 'tools[0].function.parameters' } },
  ],
  ['vertexai', 429, { error: limited }, waits],
  // Of servers that speak OpenAI's protocol.
  [
    'openai',
    400,
    { object: 'error', message: tooLong, type: 'BadRequestError', param: null, code: 400 },
    isTooLong,
  ],
  ['openai', 400, { error: tooLong }, isTooLong],
  [
    'openai',
    400,
    { error: { code: 400, message: 'no', type: 'exceed_context_size_error' } },
    { code: isTooLong.code },
  ],
  ['openai', 429, { error: limited }, waits],
  ['openai', 429, [{ error: limited }], waits],
  // As its status would have said.
  ['openai', 200, { error: limited }, waits],
  ['openai', 200, { error: { code: '429', message: 'no' } }, isLimited],
  ['openai', 200, { choices: [{ ...choice, error: { code: 429, message: 'no' } }] }, isLimited],
  ['openai', 200, { choices: [{ ...choice, error: { code: 400, message: tooLong } }] }, isTooLong],
  ['openai', 200, { error: { code: 402, message: 'no' } }, { code: 'provider_error', retryable: false }],
  ['openai', 200, { error: { code: 502, message: 'no' } }, { code: 'provider_error' }],
  ['openai', 200, { error: { code: 'rate_limit_exceeded', message: 'no' } }, isLimited],
  ['openai', 200, { error: { code: 7 } }, { code: 'provider_error' }],
  ['openai', 200, { error: 'no' }, { code: 'provider_error' }],
];

describe.each(replyModes)('an error in the body: $mode', ({ stream }) => {
  it.each(rows)(
    '%s answers %i with %j -> %j, and nothing of its text is kept',
    async (id, status, body, gives) => {
      const answer: PlayedAnswer = { status, whole: JSON.stringify(body), events: [['', Object(body)]] };
      const failure = await play(id, answer, { stream }).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(Failure);
      expect(failure).toMatchObject(gives);
      expect(JSON.stringify(failure)).not.toContain('secret');
    },
  );
});
