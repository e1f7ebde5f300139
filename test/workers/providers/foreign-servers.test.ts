import { describe, expect, it } from 'vitest';
import { type PlayedAnswer, startPlaying } from '../../support/playing-provider.js';
import { anthropic, deltas, openai, started, usage } from '../../support/provider-answers.js';

/** What servers write that speak OpenAI's or Anthropic's protocol, and are others. */

const { play } = await startPlaying();
const stream = true;

const hello = openai({ content: 'Hello' }, [{ content: 'Hel' }, { content: 'lo' }], 'stop');
const helloAnthropic = anthropic({
  blocks: [{ type: 'text', text: 'Hello' }],
  pieces: [
    started(0, { type: 'text', text: '' }),
    ...deltas(0, ...['Hel', 'lo'].map((text) => ({ type: 'text_delta', text }))),
  ],
  stopReason: 'end_turn',
});

/** The answer with this event before and behind each of its own. */
const withEvent = (answer: PlayedAnswer, ...event: PlayedAnswer['events'][number]): PlayedAnswer => ({
  ...answer,
  events: [event, ...answer.events.flatMap((own): PlayedAnswer['events'] => [own, event])],
});

describe('an event without a part of the reply', () => {
  it.each([
    ...[
      'null',
      '',
      ' ',
      '{}',
      '{"choices":null}',
      '{"choices":[]}',
      '{"choices":[null]}',
      '{"choices":[{}]}',
    ],
    ...['{"choices":[{"delta":null,"finish_reason":null}]}', '{"type":"keepalive"}', '{"usage":null}'],
    '{"choices":[{"delta":{"content":null,"tool_calls":null}}],"usage":{}}',
  ])('that is %j, from OpenAI’s side -> is passed over', async (data) => {
    const reply = await play('openai', withEvent(hello, '', data), { stream });
    expect(reply).toMatchObject({ text: 'Hello', reason: 'stop', usage });
  });

  it('that has token counts alone, without choices -> they count', async () => {
    const [said, ended] = [hello.events.slice(0, 3), hello.events.slice(3)];
    const counts = ended.map(([name, data]): [string, object] => [name, { usage: Object(data).usage }]);
    const reply = await play('openai', { whole: '', events: [...said, ...counts] }, { stream });
    expect(reply).toMatchObject({ text: 'Hello', usage });
  });

  it.each([
    ...['null', '', '{}', '{"type":"ping"}', '{"type":"content_block_delta","index":0,"delta":null}'],
    '{"type":"vendor_event","vendor":1}',
  ])('that is %j, from Anthropic’s side -> is passed over', async (data) => {
    const reply = await play('anthropic', withEvent(helloAnthropic, 'ping', data), { stream });
    expect(reply).toMatchObject({ text: 'Hello', reason: 'stop', usage });
  });

  it('that names itself in its `event` field alone -> is read by that', async () => {
    const events = helloAnthropic.events.map(([name, data]): [string, object] => [
      name,
      { ...Object(data), type: undefined },
    ]);
    expect(await play('anthropic', { whole: '', events }, { stream })).toMatchObject({ text: 'Hello' });
  });

  it.each(['7', '"x"', '[]', '{"choices":7}', '{"choices":[{"delta":{"content":7}}]}', '<html>'])(
    'that is %s, in the middle of a reply -> fails it: a part may be lost',
    async (data) => {
      const broken = play('openai', withEvent(hello, '', data), { stream });
      await expect(broken).rejects.toMatchObject({ code: 'provider_error', retryable: true });
    },
  );
});
