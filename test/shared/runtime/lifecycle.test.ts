import { beforeEach, describe, expect, it } from 'vitest';
import { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import { createRecordingLog } from '../../support/recording-log.js';

let lifecycle: Lifecycle;
let closed: string[];
let logged: ReturnType<typeof createRecordingLog>;

beforeEach(() => {
  logged = createRecordingLog();
  lifecycle = new Lifecycle(logged.log);
  closed = [];
});

const open = (name: string, release: () => Promise<void> | void = () => {}) =>
  lifecycle.opened(name, name, async (resource) => {
    await release();
    closed.push(resource);
  });

describe('Lifecycle', () => {
  it('closes one after the other, last opened first', async () => {
    const gate = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    open('first');
    open('second', () => {
      reached.resolve();
      return gate.promise;
    });
    open('third');
    const closing = lifecycle.close();
    await reached.promise;
    expect(closed).toEqual(['third']);
    gate.resolve();
    await closing;
    expect(closed).toEqual(['third', 'second', 'first']);
  });

  it('goes on past those that fail, and logs their names', async () => {
    open('first');
    lifecycle.opened('rejects', undefined, () => Promise.reject(new Error('x')));
    lifecycle.opened('throws', undefined, () => {
      throw new Error('x');
    });
    open('third');
    await Promise.all([lifecycle.close(), lifecycle.close()]);
    await lifecycle.close();
    expect(closed).toEqual(['third', 'first']);
    expect(logged.lines).toMatchObject([
      { resource: 'throws', level: 50 },
      { resource: 'rejects', level: 50 },
    ]);
  });

  it('announces the stop before anything is closed', async () => {
    const seen: boolean[] = [];
    open('only', () => void seen.push(lifecycle.stopping.aborted));
    expect(lifecycle.stopping.aborted).toBe(false);
    const closing = lifecycle.close();
    expect(lifecycle.stopping.aborted).toBe(true);
    await closing;
    expect(seen).toEqual([true]);
  });

  it('closes what is opened while it closes, before what was there already', async () => {
    open('first', () => void open('last'));
    open('second', () => {
      open('late');
      open('later');
    });
    open('third');
    await lifecycle.close();
    expect(closed).toEqual(['third', 'second', 'later', 'late', 'first', 'last']);
  });

  // A start that is slower than the stop leaves its resources open; only the exit of the process ends them.
  it('closes what is opened after it has closed', async () => {
    await lifecycle.close();
    open('too late');
    await lifecycle.close();
    expect(closed).toEqual(['too late']);
  });
});
