import { describe, expect, it } from 'vitest';
import { outcomeToFailure } from '../../../../api/chat/chat-result.js';
import { decodeOutcome, encodeOutcome } from '../../../../shared/protocol/outcome.js';
import { toFailedOutcome } from '../../../../workers/job/outcomes.js';
import { classifyError } from '../../../../workers/providers/errors/error-classification.js';

const times = { queueMs: 0, providerMs: 0 };

/** The failure that reaches the API from a refusal with this text. */
function heardOf(text: string, words: string[] = [], status = 400) {
  const failure = classifyError(new Error(text), { status, words, text });
  const outcome = decodeOutcome(encodeOutcome(toFailedOutcome(failure, times)));
  if (outcome.kind !== 'failed') throw new TypeError('not a failure');
  return outcomeToFailure(outcome, 'anthropic');
}

/** Names in their order, and the texts of the sources that `refusals.ts` has. */
const texts = `
mid_conv_system        | role 'system' is not supported on this model
mid_conv_system        | messages: Unexpected role "system". The Messages API accepts a top-level \`system\` parameter
mid_conv_system        | messages.0: use the top-level 'system' parameter for the initial system prompt; the directive-only form
mid_conv_system        | messages.3: role 'system' must follow a 'user' message or an 'assistant' message
mid_conv_system        | messages.3: role 'system' must precede an 'assistant' message or end the array
mid_conv_system        | messages.3: role 'system' supports text, tool_addition, and tool_removal blocks only
mid_conv_system        | messages.3: cache_control is not allowed on system messages
cache_control_field    | messages.2.content.0.text.cache_control: Extra inputs are not permitted
cache_control_field    | The model returned the following errors: system.0.cache_control: Extra inputs are not permitted
thinking_signature     | messages.1.content.0: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.
thinking_signature     | messages.1.content.2: Invalid \`data\` in \`redacted_thinking\` block
thinking_signature     | messages.1.content.0.thinking.signature: Field required
thinking_signature     | messages.5.content.0: \`thinking\` or \`redacted_thinking\` blocks in the latest message cannot be modified.
thinking_type:adaptive | adaptive thinking is not supported on this model
thinking_type:adaptive | The model returned the following errors: thinking: Input tag 'adaptive' found using 'type' does not match
thinking_type:enabled  | "thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort"
structured_outputs_unsupported | output_config.format: Extra inputs are not permitted
structured_outputs_unsupported | output_format: Extra inputs are not permitted
effort_unsupported     | This model does not support the effort parameter.
effort_unsupported     | output_config.effort: Extra inputs are not permitted
effort_unsupported     | output_config: Extra inputs are not permitted
media_budget           | too many images and documents: 104 + 1 > 100
media_budget           | Too much media in the request
image_block            | messages.7.content.2.image.source.base64.data: At least one of the image dimensions exceed max allowed size
image_block            | messages.7.content.0.tool_result.content.1.image.source.base64: image exceeds 5 MB maximum: 6418576 bytes
image_block            | Could not process image
image_block            | Invalid content type. image_url is only supported by certain models.
image_block            | This model doesn't support the image field for user messages.
image_block            | this model does not support image input
document_block         | messages.38.content.0.pdf.source.base64.data: A maximum of 100 PDF pages may be provided.
document_block         | messages.4.content.1.document.source: no
document_block         | Could not process PDF
document_block         | The PDF specified was not valid.
beta_header:a-2025.1   | Unexpected value(s) \`a-2025.1\`, \`b\` for the \`anthropic-beta\` header. Please consult our documentation
                       | Unexpected value(s) \`a b\` for the \`anthropic-beta\` header.
                       | x: Unexpected value(s) \`a-2025.1\` for the \`anthropic-beta\` header.
                       | max_tokens: Field required
                       | messages.0.content: Input should be a valid list
                       | messages.1.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`text\`.
                       | tool 'Could not process image' not found
                       | no such tool: "adaptive thinking is not supported"
                       | tools.0.custom.input_schema.properties.cache_control: Extra inputs are not permitted`;

describe('what a provider cannot do', () => {
  const rows = texts.split('\n').slice(1);
  it.each(rows.map((row) => row.split('|').map((cell) => cell.trim())))(
    'is named %j, and no other word is kept: %s',
    (name, text = '') => {
      const { code, facts } = heardOf(text);
      expect([code, facts.capability ?? '']).toEqual(['provider_rejected', name]);
    },
  );

  it.each(['invalid_image_format', 'invalid_base64_image', 'image_too_large', 'failed_to_download_image'])(
    'is an image by the code of OpenAI, too: %s',
    (word) => expect(heardOf('no', [word]).facts.capability).toBe('image_block'),
  );

  it.each([401, 403, 429, 500])('is read from no other answer: %i', (status) => {
    expect(heardOf('Could not process image', [], status).facts.capability).toBeUndefined();
  });

  it('has a name that this release cannot read → the failure stays, without it', () => {
    const outcome = { kind: 'failed', code: 'provider_rejected', retryable: false, ...times } as const;
    const read = (capability: string) => decodeOutcome(encodeOutcome({ ...outcome, capability }));
    expect(read('no name')).toEqual(outcome);
    expect(read('a_new:one-2027')).toEqual({ ...outcome, capability: 'a_new:one-2027' });
  });
});
