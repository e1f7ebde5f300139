import { expect } from 'vitest';
import { authorization, blogToken, type Deployment } from '../support/deployment.js';
import { fault } from './support/fault.js';

const basic = (credentials: string): string => `Basic ${Buffer.from(credentials).toString('base64')}`;
const bearer = (token: string): string => `Bearer ${token}`;

interface Attempt {
  credentials?: string | undefined;
  /** Where the proxy says that it comes from. */
  from?: string;
}

/** A good request but for its credentials. */
const attempt = ({ url }: Deployment, path: string, { credentials, from }: Attempt): Promise<Response> =>
  fetch(`${url}${path}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-LLM': 'openai',
      ...(credentials !== undefined && { Authorization: credentials }),
      ...(from && { 'X-Forwarded-For': from }),
    },
    body: '{"content":"x","messages":[{"content":"x"}]}',
  });

const badOnes = [
  undefined,
  '',
  'Basic',
  'Basic !!!',
  basic('tester'),
  basic('tester:wrong'),
  `Basic ${'A'.repeat(10_240)}`,
];
const doors = [
  { path: '/chat', challenge: 'Basic realm="chat", charset="UTF-8"', bad: [...badOnes, bearer(blogToken)] },
  {
    path: '/blogs',
    challenge: 'Bearer realm="blogs"',
    bad: [...badOnes, bearer('A'.repeat(10_240)), authorization],
  },
];

fault(
  { id: 'S1', injected: 'no, wrong, malformed, huge and the other door’s credentials' },
  async (books) => {
    const deployment = await books.start({ workers: 0 });
    let attempts = 0;
    for (const { path, challenge, bad } of doors) {
      const bodies = new Set<string>();
      for (const credentials of bad) {
        const answer = await attempt(deployment, path, { credentials });
        expect(answer.status).toBe(401);
        expect(answer.headers.get('www-authenticate')).toContain(challenge);
        bodies.add(JSON.stringify({ ...((await answer.json()) as object), requestId: '' }));
        attempts += 1;
      }
      expect(bodies.size).toBe(1);
    }
    return `${attempts} × 401 with WWW-Authenticate, the bodies equal`;
  },
);

fault({ id: 'S2', injected: 'a hundred bad logins from one address' }, async (books) => {
  const deployment = await books.start({ variables: { TRUSTED_PROXIES: 'loopback' } });
  const from = '203.0.113.7';
  const guesses = await Promise.all(
    Array.from({ length: 100 }, (_, n) =>
      attempt(deployment, '/chat', { credentials: basic(`tester:${n}`), from }),
    ),
  );
  const refused = guesses.filter(({ status }) => status === 429);
  expect(guesses.filter(({ status }) => status === 401).length + refused.length).toBe(100);
  expect(refused.length).toBeGreaterThan(50);
  for (const { headers } of refused) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  await Promise.all(guesses.map((guess) => guess.arrayBuffer()));
  for (const elsewhere of ['203.0.113.8', from]) {
    const good = await attempt(deployment, '/chat', { credentials: authorization, from: elsewhere });
    expect(good.status).toBe(200);
    await good.arrayBuffer();
  }
  return `${100 - refused.length} × 401, then ${refused.length} × 429; good clients 200, elsewhere and there`;
});
