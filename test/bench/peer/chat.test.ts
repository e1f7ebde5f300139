import { expect, it } from 'vitest';
import { lengthsOf } from './chat.js';

it.each([
  ['as was asked', 60, { seconds: 2, warmUpSeconds: 1, timeoutSeconds: 10 }],
  ['several answers take', 5000, { seconds: 40, warmUpSeconds: 10, timeoutSeconds: 15 }],
])('measures for as long as %s', (_, latencyMs, lengths) => {
  expect(lengthsOf({ latencyMs, connections: 1 }, 2)).toEqual(lengths);
});
