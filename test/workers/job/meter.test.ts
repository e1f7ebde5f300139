import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../../dev/free-port.js';
import { startSimulator } from '../../../dev/simulator/server.js';
import { Cancelled } from '../../../workers/gate/gated-call.js';
import { meter } from '../../../workers/job/meter.js';
import type { ProviderReply } from '../../../workers/providers/provider.js';
import type { Heard } from '../../../workers/providers/reply/call-meter.js';
import { madeCallOf } from '../../support/calls.js';
import { type ProviderSetup, providerSetups, replyModes } from '../../support/providers.js';

let simulator: Awaited<ReturnType<typeof startSimulator>>;
beforeAll(async () => {
  simulator = await startSimulator({ port: 0 });
});
afterAll(() => simulator.close());

const hello = { role: 'user', content: 'Hello' } as const;
interface Asked {
  model: string;
  stream?: boolean;
  url?: string;
  signal?: AbortSignal;
}

/** The rows of one call of this provider, and how it ended. */
async function rowsOf(setup: ProviderSetup, { model, stream = false, url, signal }: Asked) {
  const provider = await setup.load(url ?? simulator.url);
  onTestFinished(() => provider.close());
  const request = { model, turns: [hello] };
  const call = madeCallOf({ provider: setup.id, request, ...(signal && { stop: signal }) });
  const ended = await meter(call, ({ meter: own, sent }) =>
    provider.run({ ...sent, signal: call.signal, meter: own, isStreamed: stream }, () => {}),
  ).catch((error: Error) => error);
  return { rows: call.job.calls, ended };
}

describe.each(providerSetups)('$name', (setup) => {
  describe.each(replyModes)('a $mode call', ({ stream }) => {
    it('that is answered -> what the provider told, with its id of the request', async () => {
      const { rows, ended } = await rowsOf(setup, { model: 'sim-say-3', stream });
      const { usage } = ended as ProviderReply;
      expect(rows).toMatchObject([
        { known: 'told', code: 'ok', status: 200, requests: 1, model: 'sim-say-3' },
      ]);
      expect(rows[0]?.tokens).toMatchObject({ input: usage?.inputTokens, output: usage?.outputTokens });
      expect(rows[0]?.requestId).toMatch(/^[\w.:-]+$/);
    });

    it.each([
      ['sim-status-429', 'provider_rate_limited', 429],
      ['sim-status-503', 'provider_error', 503],
    ])('that is refused as by %s -> nothing, as the provider says', async (model, code, status) => {
      const { rows } = await rowsOf(setup, { model, stream });
      expect(rows).toMatchObject([{ known: 'told', code, status, tokens: { input: 0, output: 0 } }]);
    });

    it('without counts -> estimated by what came', async () => {
      const { rows } = await rowsOf(setup, { model: 'sim-say-9-400.no-usage', stream });
      expect(rows).toMatchObject([{ known: 'estimated', tokens: { input: 2, output: 900 } }]);
    });

    it('that is cancelled before its first word -> estimated by what was asked', async () => {
      const { rows } = await rowsOf(setup, { model: 'sim-hang', stream, signal: leavingSoon() });
      expect(rows).toMatchObject([{ known: 'estimated', code: 'cancelled', tokens: { input: 2 } }]);
    });

    it('that nobody takes -> no row', async () => {
      const url = `http://127.0.0.1:${await freePort()}`;
      expect((await rowsOf(setup, { model: 'sim-echo', stream, url })).rows).toEqual([]);
    });
  });

  it('a stream that ends in the middle -> estimated by what came', async () => {
    const { rows } = await rowsOf(setup, { model: 'sim-unfinished-4.say-8-400', stream: true });
    expect(rows).toMatchObject([{ known: 'estimated', code: 'provider_error', tokens: { output: 400 } }]);
  });
});

/** Aborts as for a caller who has left, once the request is on its way. */
function leavingSoon(): AbortSignal {
  const controller = new AbortController();
  const seen = simulator.calls.list().length;
  const leave = () => {
    if (simulator.calls.list().length === seen) return void setTimeout(leave, 5);
    controller.abort(new Cancelled());
  };
  leave();
  return controller.signal;
}

describe('what was heard', () => {
  const rowOf = async (heard: Partial<Heard>, { status = 200, images = 0 } = {}) => {
    const image = { type: 'image', url: 'https://example.org/i' } as const;
    const content = [{ type: 'text', text: 'x'.repeat(40) } as const, ...Array(images).fill(image)];
    const call = madeCallOf({ request: { model: 'm', turns: [{ role: 'user', content }] } });
    await meter(call, async ({ meter: own }) => {
      own.sent();
      own.head({ status, headers: {} });
      own.heard({ usage: {}, isComplete: true, bytes: 0, ...heard });
      return { text: '', model: 'm', reason: 'stop' };
    });
    return call.job.calls[0];
  };

  it.each<[string, Partial<Heard>, object]>([
    [
      'zeros',
      { usage: { inputTokens: 0, outputTokens: 0 } },
      { known: 'told', tokens: { input: 0, output: 0 } },
    ],
    [
      'all kinds',
      {
        usage: {
          ...{ inputTokens: 9, cachedTokens: 4, cacheWriteTokens: 3, cacheWrite1hTokens: 2 },
          ...{ outputTokens: 8, reasoningTokens: 7 },
        },
      },
      { tokens: { input: 9, cached: 4, written: 3, writtenFor1h: 2, output: 8, thinking: 7 } },
    ],
    [
      'one side alone',
      { usage: { inputTokens: 9 }, bytes: 8 },
      { known: 'estimated', tokens: { input: 9, output: 2 } },
    ],
    [
      'a count of the beginning alone',
      { usage: { inputTokens: 9, outputTokens: 1 }, bytes: 80, isComplete: false },
      { known: 'estimated', tokens: { input: 9, output: 20 } },
    ],
    ['nothing', {}, { known: 'estimated', tokens: { input: 10, output: 0 } }],
    ['its own id and tier', { answerId: 'r-1', tier: 'flex' }, { requestId: 'r-1', tier: 'flex' }],
  ])('%s -> %j', async (_, heard, row) => {
    expect(await rowOf(heard)).toMatchObject(row);
  });

  it('of images -> a thousand each where it is not told', async () => {
    expect(await rowOf({}, { images: 2 })).toMatchObject({ tokens: { input: 2010 } });
  });

  it('of an error behind a part of a reply -> estimated', async () => {
    expect(await rowOf({ isComplete: false, bytes: 4 }, { status: 500 })).toMatchObject({
      known: 'estimated',
      tokens: { input: 10, output: 1 },
    });
  });
});
