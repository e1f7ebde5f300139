import { expect } from 'vitest';
import { providerIds } from '../../shared/contracts/contract.js';
import { profiles } from '../support/profiles.js';
import { catalogue } from './support/catalogue.js';

const canary = 'canary-of-what-a-caller-sent';
const failing = [
  'sim-status-400',
  'sim-status-401',
  'sim-status-500',
  'sim-html',
  'sim-truncated',
  'sim-echo',
];

catalogue({ variables: { ...profiles.plain, LOG_LEVEL: 'trace' } }, (add) => {
  add(
    'S7 canaries in prompts, secrets, tokens, headers and fields → in no problem, no log line and no metric',
    { callsPerRequest: 2 },
    async (books) => {
      const { blog, url, api, workers, logs } = books.deployment;
      const basic = `Basic ${Buffer.from(`${canary}:${canary}`).toString('base64')}`;
      const replies = await Promise.all([
        ...providerIds.flatMap((provider) =>
          failing.map((model) => books.chat({ provider, model, messages: [{ content: canary }] })),
        ),
        books.chat({ headers: { Authorization: basic } }),
        books.chat({ body: `{"messages":[{"content":"${canary}` }),
        books.chat({ body: `{"messages":[{"role":"${canary}","${canary}":1}]}` }),
        books.chat({ headers: { 'X-LLM': canary } }),
        books.chat({ headers: { Prefer: `wait=${canary}` } }),
      ]);
      const answers = [
        await blog(`/blogs?tag=${canary}`, { headers: { Authorization: `Bearer ${canary}` } }),
        await blog('/blogs', { json: { content: 1, title: canary, [canary]: canary } }),
        await fetch(`${url}/${canary}?${canary}`, { headers: { 'X-Request-Id': canary } }),
      ];
      const problems = replies.filter(({ status }) => status !== 200).map(({ body }) => JSON.stringify(body));
      expect(problems).toHaveLength(5 * providerIds.length + 5);
      const addresses = [url, ...workers.map(({ port }) => `http://127.0.0.1:${port}`)];
      const metrics = await Promise.all(addresses.map(async (at) => (await fetch(`${at}/metrics`)).text()));
      expect(metrics.join('\n')).toContain(
        'quillgate_chat_requests_total{provider="none",code="unknown_provider"} 1',
      );
      expect(metrics.join('\n')).toContain(
        'quillgate_provider_calls_total{provider="openai",kind="first",code="provider_rejected"}',
      );
      // It writes the last lines as it ends.
      await api.stop({ graceMs: 60_000 });
      const lines = logs().split('\n');
      expect(lines.length).toBeGreaterThan(50);
      const texts = [...problems, ...(await Promise.all(answers.map((answer) => answer.text())))];
      const searched = [...texts, ...lines, ...metrics.flatMap((text) => text.split('\n'))];
      const encoded = [canary, basic.slice('Basic '.length)];
      expect(searched.filter((text) => encoded.some((secret) => text.includes(secret)))).toEqual([]);
    },
  );
});
