import type { ProviderId } from '../contracts/contract.js';
import type { OpaquePart } from '../conversation.js';

/**
 * Data of other providers for their models alone travel as signatures of Anthropic's thinking blocks, which clients
 * send back byte for byte: `provider.model.data`, the data in base64url. Neither a provider's name nor base64url has a
 * dot, so all between the first dot and the last is the model, which may have dots and slashes.
 */

interface Signed {
  readonly provider: ProviderId;
  readonly model?: string | undefined;
  /** JSON text of an object. */
  readonly data: string;
}

/** The signature of a block that shows such a part; `fromSignature` reads it back. */
export const toSignature = ({ provider, model = '', data }: Signed): string =>
  `${provider}.${model}.${Buffer.from(data).toString('base64url')}`;

const signing: readonly ProviderId[] = ['openai', 'bedrock', 'vertexai'];
const maxModelLength = 2048;
/** OpenAI's word about the text behind it. */
const startOfPhase = '{"phase":';

/**
 * The part of a signature that `toSignature` has written; undefined for any other text, such as Anthropic's own. The
 * data come from a client and may be any text: each adapter reads its own by a strict schema, or leaves the part out.
 */
export function fromSignature(text: string): OpaquePart | undefined {
  const [first, last] = [text.indexOf('.'), text.lastIndexOf('.')];
  const provider = signing.find((id) => id === text.slice(0, first));
  const model = text.slice(first + 1, last);
  if (provider === undefined || last <= first + 1 || model.length > maxModelLength) return undefined;
  const encoded = text.slice(last + 1);
  const data = Buffer.from(encoded, 'base64url').toString();
  // Node skips what is no base64url, and has U+FFFD for what is no UTF-8.
  if (Buffer.from(data).toString('base64url') !== encoded || !data.startsWith('{')) return undefined;
  return { type: 'opaque', provider, model, data, ...(data.startsWith(startOfPhase) && { role: 'start' }) };
}
