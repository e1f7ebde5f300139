import type { RecentRequest } from '../../shared/contracts/history.js';
import type { Relay } from '../../shared/queue/relay.js';

/** A chat that has ended. */
export const recentRequest = (own: Partial<RecentRequest> = {}): RecentRequest => ({
  ...{ id: 'chat', user: 'anna', provider: 'openai', model: 'm', streamed: false },
  receivedAt: new Date(Date.now() - 30).toISOString(),
  ...{ queuedMs: 1, startedMs: 5, endedMs: 30, queueMs: 4, providerMs: 25, code: 'ok' },
  attempts: [{ provider: 'openai', model: 'm', code: 'ok' }],
  ...own,
});

type Listener = (message: unknown) => void;

/** A relay within a test: every subscriber gets what is published, as JSON, if it can read it. */
export function openBus() {
  const listeners = new Map<string, Listener[]>();
  const published: { topic: string; message: object; bytes: number }[] = [];
  let isDown = false;
  const publish: Relay['publish'] = async (topic, message) => {
    if (isDown) throw new Error('the store is down');
    const text = JSON.stringify(message);
    published.push({ topic, message, bytes: Buffer.byteLength(text) });
    for (const listener of listeners.get(topic) ?? []) listener(JSON.parse(text));
  };
  const subscribe: Relay['subscribe'] = async (topic, schema, listener) => {
    const onMessage: Listener = (message) => {
      const { success, data } = schema.safeParse(message);
      if (success) listener(data);
    };
    listeners.set(topic, [...(listeners.get(topic) ?? []), onMessage]);
  };
  return {
    published,
    publish,
    send: publish,
    subscribe,
    receive: subscribe,
    setDown: (down: boolean) => {
      isDown = down;
    },
  };
}
