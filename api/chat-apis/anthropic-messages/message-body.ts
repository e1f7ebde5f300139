import { createHash, randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { Failure } from '../../../shared/failures.js';
import { writeChat } from '../../../shared/json/json-worker.js';
import { unsupportedImage } from '../../../shared/models/image-limits.js';
import type { RequestBody } from '../../../shared/protocol/request-body.js';
import { invalid, parseBody } from '../../../shared/validation.js';
import type { UploadedImage } from '../../chat/chat-command.js';

/** The word that stands in bodies for what is not their text; nobody outside of this process knows it. */
export const bodyMark = randomBytes(18).toString('base64url');

/** The fields that are read here; all others go on as they came. https://platform.claude.com/docs/en/api/messages */
export const messageBody = z.looseObject({
  model: z.string().min(1),
  max_tokens: z.int().min(1).max(100_000_000),
  messages: z.array(z.unknown()).min(1).max(10_000),
  stream: z.boolean().optional(),
});

/** The bytes of a body beside its blobs. */
const maxTextBytes = 8_388_608;
/** A shorter text of bytes stays where it is. */
const minBlobLength = 1024;

/** A request for a message. */
export interface ReadBody {
  readonly model: string;
  readonly isStream: boolean;
  /** Whether the client wants no text of the thinking. */
  readonly hidesThinking: boolean;
  /** The fields that go on as text, with words in the place of blobs. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly facts: Omit<RequestBody, 'version' | 'features'>;
  readonly uploads: UploadedImage[];
  /** About how many tokens it has, without its blobs. */
  readonly tokens: number;
}

/**
 * Reads a body that was parsed with `bodyMark` for numbers. Takes the base64 of pictures and documents out of it: their
 * bytes lie beside the job, each once for a user. A text that is not written as `toString` writes it stays. Throws
 * `invalid_request` for what the whole account would answer for, and `payload_too_large`.
 */
export async function readMessageBody(sent: unknown, bodyBytes: number): Promise<ReadBody> {
  const {
    model,
    max_tokens: maxTokens,
    stream,
    thinking,
    metadata,
    ...fields
  } = parseBody(messageBody, sent);
  refuseShared(fields);
  const found = new Found(model);
  found.visit(fields, '');
  const blobLength = found.blobs.reduce((sum, { data }) => sum + data.length, 0);
  const textBytes = bodyBytes - blobLength;
  if (textBytes > maxTextBytes)
    throw new Failure('payload_too_large', {
      detail: 'The body has more than 8 MB beside its pictures and documents.',
    });
  const uploads = new Map<string, UploadedImage>();
  const blobs: RequestBody['blobs'] = [];
  for (const { holder, data } of found.blobs) {
    await nextTurn();
    const bytes = Buffer.from(data, 'base64');
    if (bytes.toString('base64') !== data) continue;
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    holder.data = `${bodyMark}.`;
    blobs.push({ sha256, bytes: bytes.length });
    uploads.set(sha256, { part: { sha256 }, bytes });
  }
  const { display } = z.looseObject({ display: z.unknown() }).safeParse(thinking).data ?? {};
  return {
    model,
    isStream: stream === true,
    hidesThinking: display === 'omitted',
    fields,
    facts: {
      blobs,
      maxTokens,
      ...(thinking !== undefined && { thinking: toText(thinking) }),
      ...(metadata !== undefined && { metadata: toText(metadata) }),
      ...(found.links.size > 0 && { links: [...found.links] }),
    },
    uploads: [...uploads.values()],
    tokens: Math.ceil(textBytes / 4),
  };
}

/** JSON text of a short value, in which numbers keep their digits. */
function toText(value: unknown): string {
  const written = writeChat({ body: { value, mark: bodyMark } });
  if ('body' in written) return written.body;
  throw new Failure('payload_too_large');
}

/**
 * The fields of a request that say what all keys of an account share: its files, its containers and its workspace, whom
 * it bills, and other models. `fallbacks` has models that nobody may have allowed.
 */
const sharedFields = [
  'container',
  'thread',
  'workspace_id',
  'user_profile_id',
  'billing_policy',
  'fallback_credit_token',
  'fallbacks',
];

function refuseShared(fields: Readonly<Record<string, unknown>>): void {
  const name = sharedFields.find((each) => Object.hasOwn(fields, each) && fields[each] !== null);
  if (name) throw invalid(`/${name}`, 'cannot be used here: all callers share the account');
}

interface Blob {
  readonly holder: { data: string };
  readonly data: string;
}

/** What a body has, in the order in which it is written. Its limits bound the depth. */
class Found {
  readonly blobs: Blob[] = [];
  readonly links = new Set<string>();

  constructor(private readonly model: string) {}

  visit(value: unknown, pointer: string): void {
    if (typeof value !== 'object' || value === null) return;
    if (!Array.isArray(value)) this.#check(value as Record<string, unknown>, pointer);
    for (const [key, child] of Object.entries(value)) {
      if (key === 'data' && isBlob(value)) this.blobs.push({ holder: value, data: value.data });
      else this.visit(child, `${pointer}/${key}`);
    }
  }

  #check({ type, url, model, ...others }: Record<string, unknown>, pointer: string): void {
    const place = pointer.replace(/[^\w/]+/g, '_');
    const isInput = /\/input(\/|$)|\/input_schema(\/|$)/.test(pointer);
    if (isInput) return;
    if ((type === 'file' && 'file_id' in others) || type === 'container_upload')
      throw invalid(place, 'cannot be used here: all callers share the files of the account');
    if (/^\/tools\/\d+$/.test(pointer) && model !== undefined && model !== this.model)
      throw invalid(`${place}/model`, 'must be the model of the request');
    if (type !== 'url' || typeof url !== 'string') return;
    const defect = unsupportedImage('anthropic', { type: 'image', url });
    if (defect) throw invalid(`${place}/url`, defect);
    this.links.add(new URL(url).origin);
  }
}

const isBlob = (value: object): value is { type: 'base64'; data: string } =>
  'type' in value &&
  value.type === 'base64' &&
  'data' in value &&
  typeof value.data === 'string' &&
  value.data.length >= minBlobLength;
