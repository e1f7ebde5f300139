import { describe, expect, it } from 'vitest';
import type { Rendering } from '../../../../api/blog/rendering/markdown.js';
import { createPreview, createRenderedPosts } from '../../../../api/blog/rendering/rendered-posts.js';
import type { Post } from '../../../../shared/contracts/contract.js';
import { postOf } from '../../../support/posts.js';
import { createRecordingLog } from '../../../support/recording-log.js';

const post = postOf();

/** `outcomes` are what the renderer answers in turn; later ones are the text in capitals. */
function createPosts({ maxBytes, outcomes = [] }: { maxBytes?: number; outcomes?: (Rendering | Error)[] }) {
  const texts: string[] = [];
  const recording = createRecordingLog();
  const renderer = {
    render: async (markdown: string): Promise<Rendering> => {
      texts.push(markdown);
      const outcome = outcomes.shift() ?? { kind: 'rendered', html: markdown.toUpperCase() };
      if (outcome instanceof Error) throw outcome;
      return outcome;
    },
  };
  const limits = maxBytes === undefined ? {} : { maxBytes };
  return {
    texts,
    logs: recording.text,
    render: createRenderedPosts({ renderer, log: recording.log, ...limits }),
  };
}

describe('createRenderedPosts', () => {
  it('renders a version of a post once', async () => {
    const { texts, render } = createPosts({});
    for (let reader = 0; reader < 3; reader += 1) {
      expect(await render(post)).toEqual({ html: 'A <B>', final: true });
    }
    expect(texts).toHaveLength(1);
  });

  it.each<[string, Partial<Post>]>([
    ['version', { version: 2 }],
    ['time of change', { updatedAt: '2026-11-01T00:00:00.001Z' }],
    ['id', { id: '01890000-0000-7000-8000-000000000002' }],
  ])('goes by the %s', async (_name, changes) => {
    const { texts, render } = createPosts({});
    await render(post);
    expect(await render({ ...post, ...changes, content: 'other' })).toMatchObject({ html: 'OTHER' });
    expect(texts).toEqual(['a <b>', 'other']);
  });

  it('renders once for all who ask at the same time', async () => {
    const { texts, render } = createPosts({ maxBytes: 1 });
    const pages = await Promise.all([render(post), render(post), render(post)]);
    expect(pages.map(({ html }) => html)).toEqual(Array(3).fill('A <B>'));
    expect(texts).toHaveLength(1);
  });

  it('caches the most recently used, within its memory', async () => {
    const { texts, render } = createPosts({ maxBytes: 5000 });
    const [first, second, third] = ['x', 'y', 'z'].map((letter) => ({
      ...post,
      id: letter,
      content: letter.repeat(1000),
    }));
    for (const asked of [first, second, first, third]) await render(asked as Post);
    expect(texts.map(([letter]) => letter)).toEqual(['x', 'y', 'z']);
    for (const asked of [third, first, second]) await render(asked as Post);
    expect(texts.map(([letter]) => letter)).toEqual(['x', 'y', 'z', 'y']);
  });

  it('shows what was refused as it was written, does not try it again and says which post it was', async () => {
    const { texts, render, logs } = createPosts({ outcomes: [{ kind: 'refused' }] });
    for (let reader = 0; reader < 2; reader += 1) {
      expect(await render(post)).toEqual({ html: '<pre>a &lt;b&gt;</pre>', final: true });
    }
    expect(texts).toHaveLength(1);
    expect(logs()).toContain(post.id);
    expect(logs()).not.toContain('<b>');
  });

  it('shows what there was no time for as it was written, for this once', async () => {
    const { render } = createPosts({ outcomes: [{ kind: 'busy' }] });
    expect(await render(post)).toEqual({ html: '<pre>a &lt;b&gt;</pre>', final: false });
    expect(await render(post)).toEqual({ html: 'A <B>', final: true });
  });

  it('answers whoever waits for a rendering that others have pushed out of the cache meanwhile', async () => {
    const [first, second, third] = [1, 2, 3].map(() => Promise.withResolvers<Rendering>());
    const waiting = [first, second, third];
    const renderer = { render: async () => (await waiting.shift()?.promise) ?? { kind: 'busy' as const } };
    const render = createRenderedPosts({ renderer, log: createRecordingLog().log, maxBytes: 1000 });
    const [one, two, three] = [1, 2, 3].map((version) => render({ ...post, version }));
    second?.resolve({ kind: 'rendered', html: 'x'.repeat(300) });
    await two;
    third?.resolve({ kind: 'rendered', html: 'y'.repeat(300) });
    await three;
    first?.resolve({ kind: 'busy' });
    expect(await one).toEqual({ html: '<pre>a &lt;b&gt;</pre>', final: false });
  });

  it('tries again what failed', async () => {
    const { render } = createPosts({ outcomes: [new Error('failed')] });
    await expect(render(post)).rejects.toThrow('failed');
    expect(await render(post)).toEqual({ html: 'A <B>', final: true });
  });
});

describe('createPreview', () => {
  it('renders each time, and shows what cannot be rendered as its source', async () => {
    const outcomes: Rendering[] = [{ kind: 'rendered', html: 'A' }, { kind: 'refused' }, { kind: 'busy' }];
    const preview = createPreview({ render: async () => outcomes.shift() ?? { kind: 'busy' } });
    const texts = [await preview('a <b>'), await preview('a <b>'), await preview('a <b>')];
    expect(texts).toEqual(['A', '<pre>a &lt;b&gt;</pre>', '<pre>a &lt;b&gt;</pre>']);
  });

  it('keeps no more than a few waiting, so that readers of posts are not', async () => {
    const done = Promise.withResolvers<Rendering>();
    const preview = createPreview({ render: () => done.promise });
    const running = [1, 2, 3, 4].map(() => preview('a'));
    await expect(preview('a')).rejects.toMatchObject({ code: 'rate_limited' });
    done.reject(new Error('the thread is gone'));
    for (const one of running) await expect(one).rejects.toThrow('the thread is gone');
    await expect(preview('a')).rejects.toThrow('the thread is gone');
  });
});
