import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Turn } from '../../../shared/conversation.js';
import { Failure } from '../../../shared/failures.js';
import { Cancelled } from '../../../workers/gate/ends.js';
import { ImageRoom } from '../../../workers/gate/image-room.js';
import type { Slot } from '../../../workers/gate/slots.js';
import { admittedCall, callOf } from '../../support/calls.js';

const megabyte = 1_048_576;
const turn = () => new Promise((resolve) => setImmediate(resolve));

const shown = (...megabytes: number[]): Turn[] => [
  { role: 'system', content: 'Look.' },
  {
    role: 'user',
    content: megabytes.map((each) => ({
      ...{ type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64) },
      bytes: each * megabyte,
    })),
  },
];

const requestOf = (turns: Turn[]) => ({ model: 'm', maxOutputTokens: 1, turns });

/** Room for 20 MB of images, as a call has them in eight copies. */
function startRoom() {
  const room = new ImageRoom({ maxBytes: 160 * megabyte });
  const begun: string[] = [];
  /** The names of the calls whose slots were given to other jobs. */
  const parked: string[] = [];
  const ask = (name: string, turns: Turn[], own: Parameters<typeof callOf>[0] = {}) => {
    const slot: Slot = { take: async () => {}, park: () => {}, close: () => {}, isParked: false };
    const call = callOf({ user: name, ...own, slot, request: requestOf(turns) });
    const park = () => parked.push(name) > 0;
    const answer = Promise.withResolvers<string>();
    const reply = room.run(call, admittedCall({ park }), () => {
      begun.push(name);
      return answer.promise;
    });
    reply.catch(() => undefined);
    return { reply, end: () => answer.resolve('done'), fail: answer.reject };
  };
  return { room, begun, parked, ask };
}

describe('calls with images', () => {
  it('find no room -> they wait without a slot until others end, and calls without images go on', async () => {
    const { begun, parked, ask } = startRoom();
    const first = ask('first', shown(5, 5));
    const second = ask('second', shown(10));
    const third = ask('third', shown(1));
    const text = ask('text', [{ role: 'user', content: 'Hello' }]);
    const link = ask('link', [
      { role: 'user', content: [{ type: 'image', url: 'https://a.example.org/b.png' }] },
    ]);
    await turn();
    expect([begun.toSorted(), parked]).toEqual([['first', 'link', 'second', 'text'], ['third']]);
    first.end();
    expect(await first.reply).toBe('done');
    await turn();
    expect(begun).toContain('third');
    for (const call of [second, third, text, link]) call.end();
  });

  it('are of one that has more than all the room -> it goes on alone, and leaves room when it fails', async () => {
    const { begun, ask } = startRoom();
    const large = ask('large', shown(30));
    const small = ask('small', shown(1));
    const again = ask('again', shown(30));
    await turn();
    expect(begun).toEqual(['large']);
    large.fail(new Failure('provider_error'));
    await expect(large.reply).rejects.toMatchObject({ code: 'provider_error' });
    await turn();
    expect(begun).toEqual(['large', 'small']);
    small.end();
    await turn();
    expect(begun).toEqual(['large', 'small', 'again']);
    again.end();
  });

  it('wait of one user before that of another -> the user whose calls take least comes first', async () => {
    const { begun, ask } = startRoom();
    const floods = Array.from({ length: 10 }, () => ask('m', shown(5)));
    const other = ask('v', shown(5));
    await turn();
    expect(begun).toEqual(['m', 'm', 'm', 'm']);
    floods[0]?.end();
    await turn();
    expect(begun).toEqual(['m', 'm', 'm', 'm', 'v']);
    for (const call of [...floods, other]) call.end();
  });

  it('do not fit while another user’s do -> those begin at once, with their slots; what waits behind one that leaves begins, too', async () => {
    const { begun, parked, ask } = startRoom();
    const stop = new AbortController();
    const calls = [ask('m', shown(15)), ask('m', shown(10), { stop: stop.signal }), ask('v', shown(3))];
    await turn();
    expect([begun, parked]).toEqual([['m', 'v'], ['m']]);
    calls.push(ask('m', shown(1)));
    await turn();
    expect(begun).toEqual(['m', 'v']);
    stop.abort(new Cancelled());
    await turn();
    expect(begun).toEqual(['m', 'v', 'm']);
    for (const call of calls) call.end();
  });

  it('reach their deadline while they wait -> they end', async () => {
    const { begun, ask } = startRoom();
    const first = ask('first', shown(20));
    const late = ask('late', shown(1), { deadline: Date.now() });
    await expect(late.reply).rejects.toMatchObject({ code: 'timeout' });
    expect(begun).toEqual(['first']);
    first.end();
  });

  it('wait for long, and are cancelled or made after that -> the time of a call begins after the wait', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { room, ask } = startRoom();
    const first = ask('first', shown(20));
    const stop = new AbortController();
    const calls = [
      callOf({ stop: stop.signal, request: requestOf(shown(1)) }),
      callOf({ request: requestOf(shown(1)) }),
    ];
    const admitted = calls.map(() => admittedCall());
    const [cancelled, made] = calls.map((call, n) =>
      room.run(call, admitted[n] ?? admittedCall(), async () => 'x'),
    );
    await turn();
    vi.advanceTimersByTime(5000);
    stop.abort(new Cancelled());
    await expect(cancelled).rejects.toBeInstanceOf(Cancelled);
    first.end();
    expect(await made).toBe('x');
    expect(admitted.map(({ startedAt }) => startedAt)).toEqual([undefined, performance.now()]);
  });
});
