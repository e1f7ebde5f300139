import { z } from 'zod';
import type { ProviderId } from '../../shared/contract.js';
import type { Turn } from '../../shared/conversation.js';

/** A conversation as a provider received it; without a system field, system texts are turns. */
export interface WireConversation {
  system?: string | undefined;
  turns: Turn[];
}

const roles = z.enum(['system', 'user', 'assistant']);
const oneText = z.tuple([z.strictObject({ text: z.string() })]).transform(([{ text }]) => text);
const turn = z.strictObject({ role: roles, content: z.string() });

const bodies: Record<ProviderId, z.ZodType<WireConversation>> = {
  openai: z.object({ messages: z.array(turn) }).transform(({ messages }) => ({ turns: messages })),
  anthropic: z
    .object({ system: z.string().optional(), messages: z.array(turn) })
    .transform(({ system, messages }) => ({ system, turns: messages })),
  bedrock: z
    .object({
      system: oneText.optional(),
      messages: z.array(z.strictObject({ role: roles, content: oneText })),
    })
    .transform(({ system, messages }) => ({ system, turns: messages })),
  vertexai: z
    .object({
      systemInstruction: z.object({ parts: oneText }).optional(),
      contents: z.array(
        z
          .strictObject({ role: z.enum(['user', 'model']), parts: oneText })
          .transform(
            ({ role, parts }): Turn => ({ role: role === 'model' ? 'assistant' : role, content: parts }),
          ),
      ),
    })
    .transform(({ systemInstruction, contents }) => ({ system: systemInstruction?.parts, turns: contents })),
};

/** Reads the conversation from a request's body in a provider's format. */
export function readWire(provider: ProviderId, body: unknown): WireConversation {
  return bodies[provider].parse(body);
}
