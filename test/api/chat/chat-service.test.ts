import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { countAll } from '../../../shared/queue/add-attempt.js';
import { writeContent } from '../../support/attached.js';
import * as chat from '../../support/chat-service.js';

const { asks, comeTo, ends, goesOn, isAdded, isNotAdded, leaves, ms, reads, says } = chat;
const { ok, startChatService, waits, withKey, withoutResends } = chat;
type Step = chat.Step;

let started: ReturnType<typeof startChatService>;
beforeEach(() => {
  started = startChatService();
});
afterEach(() => started.end());

const replied = { kind: 'completed', completion: ok };
const timeout = { code: 'timeout' };
const afterOne = {
  ...timeout,
  facts: { detail: expect.stringMatching(/^No answer within 1 s, .* up to 60 s /) },
};
const unavailable = { code: 'queue_unavailable' };
const ended = new Failure('unauthorized');
const ofJob =
  (facts: object): Step =>
  ({ added }) =>
    expect(added).toMatchObject([facts]);

describe('a chat', () => {
  const begun = [asks(), isAdded];
  const isLost: Step = ({ chats }) => chats.onLost('one', Date.now());
  const confirmAccess = async () => started.client.abort(new Failure('unauthorized'));
  const cancelled = ends({ kind: 'cancelled', queueMs: 0, providerMs: 0 });
  const elsewhere = [isAdded, cancelled];
  const unsure = 'add, cancel unconfirmed';
  const written = writeContent({ turns: [], parameters: { seed: 1, stop: ['a'] } });
  const asked = { user: 'another', written };
  const late = asks({ waitMs: 60_000, elapsedMs: 59_980 });

  it.each<chat.Row>([
    ['has a job -> it has what is asked', [asks(asked), ofJob({ ...asked, isAsync: false })], waits, 'add'],
    ['comes last -> its job does', [asks({ isLowPriority: true }), ofJob({ isAsync: true })], waits, 'add'],
    ['has its reply, and its client leaves -> nothing', [...begun, ends(), leaves()], replied, 'add'],
    ['is left by its client -> it is cancelled', [...begun, leaves()], timeout, 'add, cancel'],
    ['has credentials that end -> it is cancelled', [...begun, leaves(ended)], ended, 'add, cancel'],
    ['is cancelled, its user removed -> it ends so', [asks({ confirmAccess }), ...elsewhere], ended, 'add'],
    ['is cancelled elsewhere -> it ends as internal', [asks(), ...elsewhere], { code: 'internal' }, 'add'],
    ['is left before it begins -> nothing is added', [leaves(), asks()], timeout, ''],
    // A job that is cancelled before it is there would be added after that.
    ['is left in a slow add -> it ends, uncancelled', [asks(), leaves(), goesOn], timeout, 'add'],
    ['is left, and added -> it is cancelled', [asks(), leaves(), isAdded], timeout, 'add, cancel'],
    ['is left, and perhaps not added -> too', [asks(), leaves(), isNotAdded], timeout, unsure],
    // The store may take it all the same.
    ['has an add that failed -> it is cancelled', [asks(), isNotAdded], unavailable, unsure],
    ['is added too slowly -> it ends, and only that', [late, ms(21), isNotAdded], timeout, 'add'],
    [
      'has no reply in time -> says for how long',
      [asks({ waitMs: 1000 }), isAdded, ms(1000)],
      afterOne,
      'add',
    ],
    ['has taken all of its time -> nothing is added', [asks({ elapsedMs: 60_000 })], timeout, ''],
    ['is lost before its add is confirmed -> nothing', [asks(), isLost, isAdded], waits, 'add'],
    ['is lost -> it is added again, once', [...begun, isLost, isLost], waits, 'add, add'],
  ])('%s', (...row) => comeTo(started, row));
});

describe('a stored chat', () => {
  const isAsync = { ...withKey, isAsync: true };
  const keyed = asks({ storeOptions: withKey });
  const bare = asks({ storeOptions: { ...isAsync, key: undefined } });
  const inTime = asks({ storeOptions: isAsync, waitMs: 60_000 });
  const late = asks({ storeOptions: isAsync, waitMs: 20 });
  const asksAsync = asks({ storeOptions: isAsync });
  const accepted = { kind: 'accepted', id: 'one', status: 'queued' };
  const isThere: Step = ({ claim }) => {
    claim({ state: 'unknown' });
    started.adding = Promise.withResolvers();
  };
  const again = [asksAsync, isAdded, ms(0)];
  const countsOnce: Step = ({ shares }) => expect(countAll(shares.of('openai').async)).toBe(1);

  it.each<chat.Row>([
    ['is left by its client -> it goes on', [keyed, isAdded, leaves(), goesOn], timeout, 'add, detached'],
    ['is not in the queue yet -> it is not accepted', [asksAsync, ms(0)], waits, 'add'],
    ['is in the queue -> it is accepted', [asksAsync, ms(0), isAdded, goesOn], accepted, 'add, detached'],
    // Without a key no request can come back for the chat.
    ['is not taken -> it is cancelled', [bare, isNotAdded], unavailable, 'add, cancel unconfirmed of me'],
    ['is not taken, and has a key -> it is left alone', [asksAsync, isNotAdded], unavailable, 'add'],
    ['is left, and may be taken -> it goes on', [keyed, leaves(), goesOn], timeout, 'add, detached'],
    ['is left, and is not taken -> it is over', [keyed, leaves(), isNotAdded], timeout, 'add, detached'],
    ['has its reply in the time of its caller -> the reply', [inTime, isAdded, ends()], replied, 'add'],
    ['has none in that time -> it is accepted', [late, isAdded, ms(21), goesOn], accepted, 'add, detached'],
    [
      'is asked for again with its key -> it counts once',
      [asksAsync, isNotAdded, isThere, ...again, ...again, countsOnce, goesOn],
      accepted,
      'add, add, detached, add',
    ],
  ])('%s', (...row) => comeTo(started, row));

  it('has a caller that can be given opaque parts -> its job says so', async () => {
    const saysSo: Step = ({ added }) => expect(added).toMatchObject([{ reasoning: 'opaque' }]);
    await comeTo(started, ['', [asks({ reasoning: 'opaque' }), saysSo], waits, 'add']);
  });

  it('is begun -> the id of the chat is told before anything becomes of it', async () => {
    const onResolved = vi.fn();
    const isTold = () => expect(onResolved).toHaveBeenCalledExactlyOnceWith('one', { isReplayed: false });
    await comeTo(started, ['', [asks({ storeOptions: { ...withKey, onResolved } }), isTold], waits, 'add']);
  });
});

describe('a chat that is read as it is written', () => {
  const open = [reads(), isAdded];
  const keyed = [reads({ storeOptions: withKey }), isAdded];
  const hasEnded: Step = ({ claim }) => claim({ state: 'settled', outcome: ok });
  const anew = { code: 'internal', retryable: true };
  const halfway = [...open, says(0, 'Hel')];
  const beginsAnew = [says(0, 'Hel'), says(0, 'Good', 'another')];
  const rest = reads({ storeOptions: withKey }, { callId: 'call', offset: 3 });
  // The provider is silent; the worker is there.
  const minutes = Array.from({ length: 10 }, () => [ms(29_900), says(1, '')]).flat();
  const runs = [...open, ms(59_999), says(0, 'H'), ...minutes];
  const readsSlowly: Step = (service) => {
    service.isRead = false;
  };
  const breaksOff: Step = ({ breakOff }) => breakOff(new Error('left'));
  const [left, cancelled, broken] = ['add, detached, left', 'add, cancel', { message: 'left' }];
  const isLate = [...runs, ms(1001)];
  /** Its job may go on for minutes from when it has to have begun. */
  const mayRun: Step = ({ added: [{ firstDeltaBy = 0, deadline, stream } = { deadline: 0 }] }) =>
    expect([stream, deadline - firstDeltaBy]).toEqual([true, 300_000]);

  it.each<chat.Row>([
    ['has a delta -> it is written as it comes', [...open, mayRun, says(0, 'Hel')], waits, 'add', 'Hel'],
    ['ends -> what is missing is written', [...halfway, ends()], replied, 'add', 'Hel|lo'],
    ['has not begun in time -> it is cancelled', [...open, ms(60_000)], timeout, cancelled],
    ['has a key, and has not begun in time -> nothing', [...keyed, ms(60_000), goesOn], timeout, left],
    ['begins in the last moment -> it goes on', [...runs, says(1, 'e'), withoutResends], waits, 'add', 'H|e'],
    ['begins then, and is late -> it ends', [...isLate, withoutResends], timeout, 'add', 'H'],
    ['had ended before -> what is left is written', [hasEnded, rest], replied, '', 'lo'],
    ['is begun anew -> it is not continued, and cancelled', [...open, ...beginsAnew], anew, cancelled, 'Hel'],
    ['has a key, and is begun anew -> it is left', [...keyed, ...beginsAnew, goesOn], anew, left, 'Hel'],
    ['is left before its first delta -> it is cancelled', [...open, leaves()], timeout, cancelled],
    ['is left in the middle -> it is cancelled', [...halfway, leaves()], timeout, cancelled, 'Hel'],
    ['has a key, and is left -> nothing', [...keyed, says(0, 'Hel'), leaves(), goesOn], timeout, left, 'Hel'],
    [
      'has its reply, and a slow reader leaves -> nothing',
      [readsSlowly, ...open, ends(), leaves(), breaksOff],
      broken,
      'add',
      'Hello',
    ],
  ])('%s', (...row) => comeTo(started, row));
});
