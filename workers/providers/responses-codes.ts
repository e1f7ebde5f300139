import type { FailureCode } from '../../shared/failures.js';

const meaning = (code: FailureCode, words: readonly string[]) =>
  words.map((word): [string, FailureCode] => [word, code]);

/**
 * What the codes of OpenAI's Responses mean, with any status and type: those of `ResponseError` of its SDK, and three
 * that were seen. https://github.com/anomalyco/opencode/issues/25730
 */
export const codesOfResponses: readonly [word: string, FailureCode][] = [
  ...meaning('provider_error', ['server_error', 'vector_store_timeout', 'server_is_overloaded', 'slow_down']),
  ...meaning('content_blocked', ['bio_policy', 'cyber_policy', 'image_content_policy_violation']),
  ...meaning('content_blocked', ['misalignment_policy_violation']),
  ...meaning('provider_rejected', ['data_residency_mismatch', 'invalid_image', 'invalid_image_format']),
  ...meaning('provider_rejected', ['invalid_base64_image', 'invalid_image_url', 'invalid_image_mode']),
  ...meaning('provider_rejected', ['image_too_large', 'image_too_small', 'image_file_too_large']),
  ...meaning('provider_rejected', ['image_parse_error', 'unsupported_image_media_type', 'empty_image_file']),
  ...meaning('provider_rejected', ['failed_to_download_image', 'image_file_not_found']),
];
