import type { Job } from 'bullmq';
import { describe, expect, it, vi } from 'vitest';
import type { ChatJobPayload } from '../../../shared/protocol/messages.js';
import { dropLongRequest } from '../../../workers/pool/long-request.js';
import { createRecordingLog } from '../../support/recording-log.js';

describe('a job that has ended, with a request of', () => {
  it.each([
    ['8,000 letters', 'x'.repeat(8000), '', 0],
    ['8,000 letters, and 9,000 of tools', 'x'.repeat(8000), 'x'.repeat(9000), 1],
    ['8,000 characters of three bytes', '雨'.repeat(8000), '', 1],
  ])('%s -> keeps at most 16 KB of it', (_, turns, parameters, times) => {
    const updateData = vi.fn(async () => {});
    const data = { v: 2, turns, parameters, model: 'm' };
    dropLongRequest(
      { id: '1', data, updateData } as unknown as Job<ChatJobPayload>,
      createRecordingLog().log,
    );
    expect(updateData.mock.calls).toEqual(Array(times).fill([{ v: 2, turns: '[]', model: 'm' }]));
  });
});
