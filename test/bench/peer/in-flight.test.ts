import { describe, expect, it } from 'vitest';
import { type InFlight, summariseRow } from './in-flight.js';

const idleBytes = { api: 100, worker: 100, store: 100, peer: 100 };

const side = (bytes: number): InFlight => ({
  ...{ answers: 100, perSecond: 10, cpuMs: {}, machineBusy: 0, othersBusy: 0, maxAtProvider: 10 },
  errors: { wrongStatus: {}, wrongBody: 0, timeouts: 0, socket: 0, unanswered: 0 },
  peakBytes: { api: bytes, worker: bytes, store: bytes, peer: bytes, simulator: 9000, load: 9000 },
});

describe('summariseRow', () => {
  const round = { quillgate: side(200), portkey: side(150), simulator: side(0) };
  const row = summariseRow({ connections: 10, latencyMs: 500 }, [round], idleBytes);

  it('gives how much our processes grew for each request, and the other, without who plays client and provider', () => {
    expect(row).toMatchObject({ growthBytes: { quillgate: 30, portkey: 5 }, idealPerSecond: 20 });
  });
});
