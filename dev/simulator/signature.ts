import { createHash } from 'node:crypto';

/** The signature of what a model has said, in base64: the same for the same text. */
export const sign = (text: string): string =>
  Buffer.from(`simulated ${createHash('sha256').update(text).digest('hex')}`).toString('base64');
