import { describe, expect, it } from 'vitest';
import { LargeWork } from '../../../api/http/large-work.js';
import { Failure } from '../../../shared/failures.js';

/** Work that lasts until it is ended, by name, and the order in which it has begun. */
function startWork(large = new LargeWork()) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (user: string, name: string, signal?: AbortSignal) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    ends.set(name, resolve);
    const work = () => {
      begun.push(name);
      return promise;
    };
    const ended = large.run(user, work, signal);
    ended.catch(() => undefined);
    return ended;
  };
  /** Ends it, and gives what has begun once all that follows from that is done. */
  const end = async (name: string) => {
    ends.get(name)?.();
    await new Promise(setImmediate);
    return begun;
  };
  return { begun, run, end };
}

describe('large work', () => {
  it('of one user, however much -> one at a time in its order, and another user is next', async () => {
    const { run, end } = startWork();
    for (const name of ['m1', 'm2', 'm3']) run('m', name);
    run('n', 'n1');
    run('v', 'v1');
    expect(await end('none')).toEqual(['m1', 'n1']);
    expect(await end('m1')).toEqual(['m1', 'n1', 'v1']);
    expect(await end('n1')).toEqual(['m1', 'n1', 'v1', 'm2']);
    expect(await end('m2')).toEqual(['m1', 'n1', 'v1', 'm2', 'm3']);
  });

  it('that fails -> the next of its user begins', async () => {
    const large = new LargeWork();
    const { run, end } = startWork(large);
    await expect(large.run('m', () => Promise.reject(new Failure('invalid_json')))).rejects.toMatchObject({
      code: 'invalid_json',
    });
    run('m', 'm2');
    expect(await end('none')).toEqual(['m2']);
  });

  it.each(['its own', "the others'"])('whose client leaves in %s line -> it is not done', async (line) => {
    const { run, end } = startWork();
    const left = new AbortController();
    run('m', 'm1');
    run('n', 'n1');
    const leaving = run(line === 'its own' ? 'm' : 'v', 'left', left.signal);
    run('m', 'm2');
    await end('none');
    left.abort(new Failure('invalid_json'));
    await expect(leaving).rejects.toMatchObject({ code: 'invalid_json' });
    await end('n1');
    expect(await end('m1')).toEqual(['m1', 'n1', 'm2']);
  });

  it('whose client has left before -> it is not done', async () => {
    const { run, begun } = startWork();
    await expect(run('m', 'left', AbortSignal.abort(new Failure('invalid_json')))).rejects.toMatchObject({
      code: 'invalid_json',
    });
    expect(begun).toEqual([]);
  });
});
