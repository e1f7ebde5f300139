import { type ProviderId, providerIds, type Target } from '../contracts/contract.js';
import { imagesOf, partsOf, type Turn } from '../conversation.js';
import { type ChatBytes, type ChatTexts, turnsAt } from '../json/json-worker.js';
import type { ModelParameters } from '../models/model-parameters.js';
import { unsupportedReason } from '../models/provider-support.js';
import { changesFor } from './alternating-turns.js';

/**
 * What a chat says: its turns, and the parameters for its model. On the way from an API to an adapter this file alone
 * looks inside; what a further API brings is added here.
 */
export interface ChatContent {
  turns: readonly Turn[];
  /** Absent means none. */
  parameters?: ModelParameters | undefined;
}

/** The content of a chat as it goes to the queue: written once. */
export interface WrittenContent {
  /** Whether the chat has parts, tools or a format. */
  readonly hasParts: boolean;
  /** The JSON of turns and parameters: texts, or bytes where they are large. */
  readonly texts: ChatTexts | ChatBytes;
}

/** The written form of a chat whose texts have been written. */
export const toWritten = (content: ChatContent, texts: ChatTexts | ChatBytes): WrittenContent => ({
  hasParts: needsParts(content),
  texts,
});

/** The bytes of the turns' text in UTF-8. */
export const turnsBytesOf = ({ texts }: WrittenContent): Uint8Array =>
  'bytes' in texts ? texts.bytes.subarray(turnsAt, turnsAt + texts.turnsBytes) : Buffer.from(texts.turns);

const needsParts = ({ turns, parameters = {} }: ChatContent): boolean =>
  parameters.tools !== undefined ||
  parameters.format !== undefined ||
  turns.some(({ content }) => typeof content !== 'string');

/** A request of this many bytes is worth a command of its own; a shorter one stays with the job's record. */
const longRequest = 16_384;

/** The data of a job without its content; undefined where that is short. */
export function withoutContent<Data extends { turns?: unknown; parameters?: unknown }>(
  data: Partial<Data>,
): Data | undefined {
  const { turns, parameters, ...others } = data;
  if (lengthOf(turns) + lengthOf(parameters) < longRequest) return undefined;
  return { ...others, turns: '[]' } as unknown as Data;
}

const lengthOf = (text: unknown): number => (typeof text === 'string' ? Buffer.byteLength(text) : 0);

/** The providers that do not take one of the parts, or that a strict chat may not ask for its order. */
export function unfitProviders(
  { turns }: ChatContent,
  { isStrict = false }: { isStrict?: boolean | undefined },
): ProviderId[] {
  const parts = [...turns.flatMap(partsOf), ...imagesOf(turns)];
  return providerIds.filter(
    (id) =>
      parts.some((part) => unsupportedReason(id, part) !== undefined) ||
      (isStrict && changesFor(id, turns).length > 0),
  );
}

/** The parts of a request that its idempotency key stands for, beside the turns. */
interface Keyed {
  readonly provider: ProviderId;
  readonly model?: string | undefined;
  readonly parameters?: ModelParameters | undefined;
  readonly fallback?: readonly Target[] | undefined;
}

/** SHA-256 in base64url: equal for requests with the same content, however their bodies are written. */
export async function digestOf(
  written: WrittenContent,
  { provider, model, parameters, fallback }: Keyed,
): Promise<string> {
  const head = JSON.stringify([provider, model ?? null]);
  const options = sortedEntries({ ...parameters, fallback }).map((entry) => `,${JSON.stringify(entry)}`);
  const text = [
    Buffer.from(`${head.slice(0, -1)},`),
    turnsBytesOf(written),
    Buffer.from(`${options.join('')}]`),
  ];
  // Not in this thread, which a large one would hold up.
  const digest = await crypto.subtle.digest('SHA-256', Buffer.concat(text));
  return Buffer.from(digest).toString('base64url');
}

/** Sorted, so that the order in which a caller names them does not matter. */
const sortedEntries = (options: ModelParameters & Pick<Keyed, 'fallback'>): [string, unknown][] =>
  Object.entries(options)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
