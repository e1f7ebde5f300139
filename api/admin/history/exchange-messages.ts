import type { RecentRequest } from '../../../shared/history.js';
import {
  maxRequestsSent,
  type SentRequest,
  type SentSample,
  sentRequestSchema,
} from '../../../shared/protocol/history.js';
import type { EndedRequest } from './recent-requests.js';
import { sampleEveryMs, type TimedSample } from './sample-log.js';

/** Bytes of the chats of one message, far below what the relay takes. */
const maxBytes = 200_000;
/** Messages of one answer: whoever asks for the first time gets all that is kept. */
const maxMessages = 5;

/**
 * The chats as messages have them, in one message at least; those that ended first are left out where there are too many, and any that nobody
 * would take: one that is odd would cost the room of others.
 */
export function packRequests(
  ended: readonly EndedRequest[],
  { now, isFirst }: { now: number; isFirst: boolean },
): SentRequest[][] {
  const messages: SentRequest[][] = [[]];
  let bytes = 0;
  for (const one of ended.toReversed()) {
    const sent = toSentRequest(one, now);
    if (!sentRequestSchema.safeParse(sent).success) continue;
    const size = Buffer.byteLength(JSON.stringify(sent));
    const current = messages.at(-1) ?? [];
    if (current.length < maxRequestsSent && bytes + size <= maxBytes) {
      current.push(sent);
      bytes += size;
    } else {
      if (messages.length >= (isFirst ? maxMessages : 1)) break;
      messages.push([sent]);
      bytes = size;
    }
  }
  return messages;
}

function toSentRequest({ request, endedAt }: EndedRequest, now: number): SentRequest {
  const { receivedAt: _, ...sent } = request;
  return { ...sent, endedAgoMs: Math.max(0, now - endedAt) };
}

/** As `RecentRequests.add` takes it. */
export function toEndedRequest(
  { endedAgoMs, ...sent }: SentRequest,
  now: number,
): [RecentRequest, Pick<EndedRequest, 'endedAt' | 'isOwn'>] {
  const endedAt = now - endedAgoMs;
  const { id, user, provider, streamed, model, attempts, ...rest } = sent;
  const request = {
    ...{ id, user, provider, streamed },
    ...(model !== undefined && { model }),
    receivedAt: new Date(endedAt - sent.endedMs).toISOString(),
    ...withoutUndefined(rest),
    attempts: attempts.map(withoutUndefined),
  };
  return [request, { endedAt, isOwn: false }];
}

export const toSentSample = ({ slot, ...sample }: TimedSample, now: number): SentSample => ({
  ...sample,
  agoMs: Math.max(0, now - slot),
});

/** In the slot that is nearest by this machine's clock. */
export const toTimedSample = ({ agoMs, ...sample }: SentSample, now: number): TimedSample => ({
  ...sample,
  slot: Math.round((now - agoMs) / sampleEveryMs) * sampleEveryMs,
});

/** What a schema has found absent is absent, too. */
const withoutUndefined = <T extends object>(value: T): { [Key in keyof T]: Exclude<T[Key], undefined> } =>
  Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as {
    [Key in keyof T]: Exclude<T[Key], undefined>;
  };
