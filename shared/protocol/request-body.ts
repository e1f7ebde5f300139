import { z } from 'zod';

/**
 * A request that goes to its provider as its API's client wrote it: what is not in its text. The text is the body's
 * JSON without these fields, and each line feed in it, which JSON text has nowhere else, stands for the next blob.
 */
export const requestBodySchema = z.object({
  /** In the order of their places; a client may send one many times. */
  blobs: z.array(z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/), bytes: z.int().positive() })),
  /** The tokens that the reply may have. */
  maxTokens: z.int().positive(),
  /** Fields that depend on the pool as well: a limit of tokens or a user's name may change them. JSON text. */
  thinking: z.string().optional(),
  metadata: z.string().optional(),
  /** The hosts that the provider would fetch pictures from, as addresses; absent means none. */
  links: z.array(z.string()).optional(),
  /** The API's version, and the features that the client asks for, in the words of the API. */
  version: z.string(),
  features: z.array(z.string()),
});

export type RequestBody = Readonly<z.output<typeof requestBodySchema>>;

/** The text of a body with each blob in its place, in base64. */
export const withBlobs = (text: string, blobs: readonly string[]): string =>
  text
    .split('\n')
    .map((piece, place) => `${place === 0 ? '' : blobs[place - 1]}${piece}`)
    .join('');
