import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { eventFrame } from '../../../dev/simulator/bedrock/event-frame.js';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import { heldTimeouts } from '../../support/held-timeouts.js';
import { type PlayedAnswer, startPlaying } from '../../support/playing-provider.js';
import { plain } from '../../support/provider-answers.js';

const { play } = await startPlaying();

/** The events of a reply up to the one that says why it ends. */
function upToReason(provider: ProviderId): PlayedAnswer['events'] {
  const { events } = plain[provider]();
  return provider === 'vertexai' ? events : events.slice(0, -1);
}

/** A piece of a stream that is no event of its format, in the framing of the provider. */
const inFrame = (provider: ProviderId, text: string) =>
  provider === 'bedrock' ? eventFrame('keepAlive', {}) : text;

const pings: Record<ProviderId, string | Buffer> = {
  openai: 'data: {"choices":[]}\n\n',
  anthropic: 'event: ping\ndata: {"type":"ping"}\n\n',
  bedrock: eventFrame('ping', {}),
  vertexai: 'data: {}\n\n',
};

const failures: Record<ProviderId, string | Buffer> = {
  openai: 'data: {"error":{"message":"broken","type":"server_error"}}\n\n',
  anthropic: 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
  bedrock: eventFrame('internalServerException', { message: 'broken' }, 'exception'),
  vertexai: 'data: {"error":{"code":500,"status":"INTERNAL","message":"broken"}}\n\n',
};

/** The events behind the reason in place of the usual end, and whether the connection then stays open. */
const ends: [given: string, isOpen: boolean, (provider: ProviderId, response: ServerResponse) => void][] = [
  ['nothing', true, () => {}],
  [
    'comments',
    true,
    (provider, response) => void response.write(inFrame(provider, ': alive\n\n: alive\n\n')),
  ],
  ['pings', true, (provider, response) => void response.write(pings[provider])],
  ['a cut', false, (_, response) => void response.write('\n', () => response.socket?.destroy())],
  ['an error', false, (provider, response) => void response.end(failures[provider])],
  ['half an event', false, (_, response) => void response.end('data: {"unfini')],
  ['garbage', false, (_, response) => void response.end('data: <html>\n\ndata: 7\n\n')],
];

describe.each(providerIds)('%s', (provider) => {
  it.each(ends)('says why a reply ends, then %s comes -> the reply is given', async (_, isOpen, end) => {
    const { withTimeout, elapse } = heldTimeouts();
    const answer = {
      whole: '',
      events: upToReason(provider),
      end: (response: ServerResponse) => end(provider, response),
    };
    const replying = play(provider, answer, { stream: true, withTimeout });
    if (isOpen) await elapse(2000);
    expect(await replying).toMatchObject({ text: '{}', reason: 'stop' });
  });
});
