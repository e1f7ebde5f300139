import { z } from 'zod';
import { jsonText } from './json-text.js';
import { version, writtenVersion } from './version.js';

/** The users who were removed lately, whose jobs may still be queued: a record in the queue's store. */
const removedUsersSchema = z.object({ v: version, users: z.array(z.string()) });

/** The key of the record. */
export const removedUsersKey = 'users.removed';

/** At most this many ids are recorded; workers remember those that they have read before. */
const maxRecorded = 1000;

/** The record as text, with the ids that came last; `decodeRemovedUsers` reads it back. */
export const encodeRemovedUsers = (ids: readonly string[]): string =>
  JSON.stringify({ v: writtenVersion, users: ids.slice(-maxRecorded) });

/** The ids of the users; none where there is no record, or one that this release cannot read. */
export const decodeRemovedUsers = (text: string | undefined): string[] =>
  jsonText(removedUsersSchema).safeParse(text).data?.users ?? [];
