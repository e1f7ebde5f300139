import type { RecentRequest } from '../../../shared/contracts/history.js';
import {
  type HistoryAnswer,
  maxRequestsSent,
  type SentRequest,
  type SentSample,
  sentRequestSchema,
} from '../../../shared/protocol/history.js';
import { type EndedRequest, maxRequests } from './recent-requests.js';
import { sampleEveryMs, type TimedSample } from './sample-log.js';

/** Bytes of the chats of one message, far below what the relay takes. */
const maxBytes = 200_000;
/** Messages of one answer: all chats that are kept, unless their names are long. */
const maxMessages = 5;

type RequestsMessage = Pick<HistoryAnswer, 'after' | 'last' | 'requests'>;

/**
 * The chats that became known after a number, up to the `last`, in that order, as at least one message. The next
 * question fetches those for which there is no room. Invalid chats are left out, because they would take the room of
 * others.
 */
export function packRequests(
  ended: readonly EndedRequest[],
  { after, last, now }: { after: number; last: number; now: number },
): RequestsMessage[] {
  let current: RequestsMessage = { after, last: after, requests: [] };
  const messages = [current];
  let bytes = 0;
  for (const one of ended.slice(-maxRequests)) {
    const sent = toSentRequest(one, now);
    if (!sentRequestSchema.safeParse(sent).success) continue;
    const size = Buffer.byteLength(JSON.stringify(sent));
    if (current.requests.length >= maxRequestsSent || bytes + size > maxBytes) {
      if (messages.length >= maxMessages) return messages;
      current = { after: current.last, last: current.last, requests: [] };
      messages.push(current);
      bytes = 0;
    }
    current.requests.push(sent);
    current.last = one.number;
    bytes += size;
  }
  current.last = last;
  return messages;
}

function toSentRequest({ request, endedAt }: EndedRequest, now: number): SentRequest {
  const { receivedAt: _, ...sent } = request;
  return { ...sent, endedAgoMs: Math.max(0, now - endedAt) };
}

/** The arguments for `RecentRequests.add`. */
export function toEndedRequest(
  { endedAgoMs, ...sent }: SentRequest,
  now: number,
): [RecentRequest, Pick<EndedRequest, 'endedAt' | 'isOwn'>] {
  const endedAt = now - endedAgoMs;
  const receivedAt = new Date(endedAt - sent.endedMs).toISOString();
  return [
    { ...sent, receivedAt },
    { endedAt, isOwn: false },
  ];
}

export const toSentSample = ({ slot, ...sample }: TimedSample, now: number): SentSample => ({
  ...sample,
  agoMs: Math.max(0, now - slot),
});

/** Puts the sample into the slot that is nearest by this machine's clock. */
export const toTimedSample = ({ agoMs, ...sample }: SentSample, now: number): TimedSample => ({
  ...sample,
  slot: Math.round((now - agoMs) / sampleEveryMs) * sampleEveryMs,
});
