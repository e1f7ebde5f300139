import { afterEach, describe, expect, it, vi } from 'vitest';
import { ApiError, call } from '../../console/api.ts';

/** Answers nothing before the request is given up, or what is given. */
const answer = (response?: Response) =>
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (_path, init) => {
    if (response) return response;
    const { promise, reject } = Promise.withResolvers<Response>();
    const { signal } = init ?? {};
    const give = () => reject(signal?.reason);
    if (signal?.aborted) give();
    else signal?.addEventListener('abort', give);
    return promise;
  });

afterEach(() => {
  vi.restoreAllMocks();
});

describe('call', () => {
  it("throws the server's problem, and one of its own for what is no JSON", async () => {
    answer(Response.json({ detail: 'No.', code: 'not_found' }, { status: 404 }));
    await expect(call('/x')).rejects.toMatchObject({ code: 'not_found', message: 'No.' });
    answer(new Response('<html>', { status: 502, statusText: 'Bad Gateway' }));
    await expect(call('/x')).rejects.toMatchObject({
      problem: { status: 502, detail: expect.stringContaining('502') },
    });
    answer(new Response('<html>'));
    await expect(call('/x')).rejects.toMatchObject({ code: 'unreachable' });
  });

  it('gives up a server that does not answer in time', async () => {
    const limit = new AbortController();
    vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal);
    answer();
    const calling = call('/x', { signal: new AbortController().signal });
    limit.abort();
    await expect(calling).rejects.toBeInstanceOf(ApiError);
  });

  it('throws what its caller gives it up with', async () => {
    answer();
    await expect(call('/x', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
  });
});
