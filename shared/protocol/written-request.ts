import type { Turn } from '../conversation.js';
import { type ChatBytes, type ChatTexts, turnsAt, writeChat } from '../json/json-worker.js';
import type { ModelParameters } from '../models/model-parameters.js';
import { versionOf } from './chat-version.js';

/** The texts of a chat as they go to the queue: written once. */
export interface WrittenRequest {
  /** The version of what belongs to the chat. */
  readonly v: number;
  /** The JSON of turns and parameters: texts, or bytes where they are large. */
  readonly texts: ChatTexts | ChatBytes;
}

/** A conversation, with the parameters for its model. */
export interface Asked {
  turns: readonly Turn[];
  /** Absent means none. */
  parameters?: ModelParameters | undefined;
}

/** The written form of a chat whose texts have been written. */
export const toWritten = (asked: Asked, texts: ChatTexts | ChatBytes): WrittenRequest => ({
  v: versionOf(asked),
  texts,
});

/** Writes a chat in this thread, which a large one holds up. */
export const writeRequest = (asked: Asked): WrittenRequest => toWritten(asked, writeChat(asked));

/** The bytes of the turns' text in UTF-8. */
export const turnsBytesOf = ({ texts }: WrittenRequest): Uint8Array =>
  'bytes' in texts ? texts.bytes.subarray(turnsAt, turnsAt + texts.turnsBytes) : Buffer.from(texts.turns);
