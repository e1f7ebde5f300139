import { z } from 'zod';
import { jsonText } from './json-text.js';

/** One version for all that crosses between processes, or outlives them in the queue's store (decision 12). */

/** The newest that this release reads; it reads all before as well. */
const newest = 5;

/** The version that this release writes, whatever stands under it: the release before reads all of it so. */
export const writtenVersion = 1;

/** The version of a job whose request goes on as its client wrote it, which the release before does not read. */
export const bodyVersion = 5;

/** The `v` of everything that is read. After reading, all of it is of this release's version; writing decides anew. */
export const version = z
  .int()
  .min(writtenVersion)
  .max(newest)
  .transform((): typeof writtenVersion => writtenVersion);

/** A list of at most `max`, each by itself: what is odd about one, or new, does not cost the others. */
export const eachOf = <T>(schema: z.ZodType<T>, max: number) =>
  z
    .array(z.unknown())
    .max(max)
    .transform((sent) => sent.flatMap((one) => schema.safeParse(one).data ?? []));

const ofNewer = z.looseObject({ v: z.number().gt(newest) });
const newer = z.union([ofNewer, jsonText(ofNewer)]);

/** Whether this, or what this JSON text says, is of a newer release that alone can read it. */
export const isNewer = (data: unknown): boolean => newer.safeParse(data).success;
