import type { Turn } from '../conversation.js';
import type { ModelParameters } from '../models/model-parameters.js';
import { partsVersion, reasoningVersion, writtenVersion } from './version.js';

interface Chat {
  /** Absent where they lie beside the job. */
  turns?: readonly Turn[] | undefined;
  parameters?: ModelParameters | undefined;
}

/** Whether a chat has parts, tools or a format, or may have them. */
export const needsParts = ({ turns, parameters = {} }: Chat): boolean =>
  turns === undefined ||
  parameters.tools !== undefined ||
  parameters.format !== undefined ||
  turns.some(({ content }) => typeof content !== 'string');

/** Whether a turn has opaque data with the model that wrote it. */
const hasReasoning = ({ content }: Turn): boolean =>
  typeof content !== 'string' && content.some((part) => part.type === 'opaque' && part.model !== undefined);

/** The version of what belongs to the chat. */
export function versionOf(chat: Chat): number {
  if (chat.turns?.some(hasReasoning)) return reasoningVersion;
  return needsParts(chat) ? partsVersion : writtenVersion;
}
