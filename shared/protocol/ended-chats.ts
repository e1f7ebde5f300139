import { z } from 'zod';
import { providerIds } from '../contracts/contract.js';

const count = z.int().min(0).max(1_000_000_000);
const shortText = z.string().max(300);

/** The chats at a provider that ended in the last five minutes, at one API process, while their callers waited. */
export const endedChatsSchema = z.object({
  provider: z.enum(providerIds),
  ended: count,
  /** Chats that failed by the fault of the provider or of its pool. */
  failed: count,
  /** Code of the last that failed; absent when none did. */
  code: shortText.optional(),
  /** The model of all that failed; absent when there are several, or it is not known. */
  model: shortText.optional(),
});

export type EndedChats = z.output<typeof endedChatsSchema>;
