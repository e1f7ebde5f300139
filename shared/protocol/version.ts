import { z } from 'zod';
import { jsonText } from './json-text.js';

/** One version for all that crosses between processes, or outlives them in the queue's store (decision 12). */

/** The newest that this release reads; it reads all before as well (decision 12 says why the third is added to two). */
const newest = 4;

/** The version that this release writes, but for what one of the next two needs. */
export const writtenVersion = 1;

/** The version of everything that belongs to a chat with parts, tools or a format. */
export const partsVersion = 2;

/** The version of what holds thinking, opaque data with its model, or a call's other fields. */
export const reasoningVersion = 3;

/** The version of a job whose texts lie beside it: releases before have to leave it to others (decision 12). */
export const besideVersion = 4;

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
