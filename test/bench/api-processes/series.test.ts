import { describe, expect, it } from 'vitest';
import { figuresOf } from './series.js';

const errors = { wrongStatus: { 503: 1 }, wrongBody: 0, timeouts: 1, socket: 0, unanswered: 0 };
const counts = { commands: 1100, scripts: 210, bytesIn: 10_500, bytesOut: 20_500 };
const idle = { commands: 50, scripts: 5, bytesIn: 250, bytesOut: 250 };

describe('figuresOf', () => {
  it('gives what one request costs the store beyond an idle second', () => {
    const run = { load: { answers: 100, seconds: 2, errors }, counts };
    expect(figuresOf(4, run, idle)).toEqual({
      ...{ apis: 4, idlePerSecond: idle, perSecond: 50, errors: 2 },
      perRequest: { commands: 10, scripts: 2, bytesIn: 100, bytesOut: 200 },
    });
  });

  it('refuses a store that does not count', () => {
    expect(() => figuresOf(1, { load: { answers: 1, seconds: 1, errors } }, undefined)).toThrow();
  });
});
