import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PoolSettingsEditor } from '../../../console/pools/settings.ts';
import type { PoolSettings } from '../../../shared/contracts/fleet-contract.ts';
import { patience } from '../../support/patience.ts';

/** The server's settings, and each change that it was asked for. */
let stored: PoolSettings;
let asked: { version: string; body: unknown }[];
let release: (() => void) | undefined;
let editor: PoolSettingsEditor;

const settings = (version: number, overrides: Record<string, unknown>, changedBy = 'me'): PoolSettings => ({
  ...{ provider: 'openai', version, changedBy, changedAt: '2026-11-23T00:00:00.000Z' },
  settings: [
    ...Object.entries(overrides).map(([name, value]) => ({ name, value, source: 'override' as const })),
    { name: 'timeoutMs', value: 45_000, source: 'environment' },
  ],
  concurrency: { workers: 20, boundBy: 'workers' },
  workers: { live: 1, current: 1 },
});

beforeEach(async () => {
  stored = settings(3, { concurrency: 20 });
  asked = [];
  release = undefined;
  vi.stubGlobal('fetch', async (_path: string, { method, headers, body }: RequestInit) => {
    if (method === 'GET') return Response.json(stored);
    const version = new Headers(headers).get('If-Match') ?? '';
    asked.push({ version, body: JSON.parse(String(body)) });
    if (release === undefined && asked.length === 1 && holdsFirst) await held();
    if (version !== `"${stored.version}"`)
      return Response.json({ code: 'precondition_failed', detail: 'changed' }, { status: 412 });
    stored = settings(stored.version + 1, JSON.parse(String(body)));
    return Response.json(stored);
  });
  holdsFirst = false;
  editor = new PoolSettingsEditor('openai');
  await editor.load();
});
afterEach(() => vi.unstubAllGlobals());

let holdsFirst = false;
const held = () =>
  new Promise<void>((resolve) => {
    release = resolve;
  });

describe('PoolSettingsEditor', () => {
  it('changes what was asked for, based on the version that is known', async () => {
    await editor.change({ intake: 'paused' });
    expect(asked).toEqual([{ version: '"3"', body: { concurrency: 20, intake: 'paused' } }]);
    expect(editor.known.value?.version).toBe(4);
    expect(editor.failed.value).toBeUndefined();
    await editor.change({ concurrency: null });
    expect(asked[1]).toEqual({ version: '"4"', body: { intake: 'paused' } });
  });

  it('sends what comes meanwhile as one change afterwards, based on its own', async () => {
    holdsFirst = true;
    const first = editor.change({ concurrency: 1 });
    await vi.waitFor(() => expect(release).toBeDefined(), patience);
    await Promise.all([editor.change({ concurrency: 2 }), editor.change({ concurrency: 3 })]);
    expect(editor.isSaving.value).toBe(true);
    release?.();
    await first;
    expect(asked.map(({ version, body }) => [version, body])).toEqual([
      ['"3"', { concurrency: 1 }],
      ['"4"', { concurrency: 3 }],
    ]);
    expect(editor.isSaving.value).toBe(false);
  });

  it('does not overwrite what another operator has set since the change began, even when that is known by now', async () => {
    editor.begin();
    stored = settings(4, { concurrency: 7 }, 'somebody');
    await editor.load();
    await editor.change({ concurrency: 9 });
    expect(asked[0]?.version).toBe('"3"');
    expect(editor.failed.value).toMatchObject({ isConflict: true, change: { concurrency: 9 } });
    expect(editor.known.value).toMatchObject({ version: 4, changedBy: 'somebody' });
    await editor.retry();
    expect(asked[1]).toEqual({ version: '"4"', body: { concurrency: 9 } });
    expect(editor.failed.value).toBeUndefined();
    expect(editor.known.value?.version).toBe(5);
  });

  it('bases what was begun while a change was on its way on that change', async () => {
    holdsFirst = true;
    const first = editor.change({ concurrency: 1 });
    await vi.waitFor(() => expect(release).toBeDefined(), patience);
    editor.begin();
    release?.();
    await first;
    await editor.change({ intake: 'paused' });
    expect(asked[1]).toEqual({ version: '"4"', body: { concurrency: 1, intake: 'paused' } });
    expect(editor.failed.value).toBeUndefined();
  });

  it('keeps what has failed when something else is changed, until it is made or discarded', async () => {
    editor.begin();
    stored = settings(4, { concurrency: 7 }, 'somebody');
    await editor.change({ concurrency: 9, model: 'gpt' });
    await editor.change({ intake: 'paused' });
    expect(stored.version).toBe(5);
    expect(editor.failed.value?.change).toEqual({ concurrency: 9, model: 'gpt' });
    await editor.change({ concurrency: 8 });
    expect(editor.failed.value?.change).toEqual({ model: 'gpt' });
    editor.begin();
    stored = settings(7, { concurrency: 6 }, 'somebody');
    await editor.change({ concurrency: 5 });
    expect(editor.failed.value).toMatchObject({ isConflict: true, change: { concurrency: 5, model: 'gpt' } });
    await editor.retry();
    expect(asked.at(-1)).toEqual({ version: '"7"', body: { concurrency: 5, model: 'gpt' } });
    expect(editor.failed.value).toBeUndefined();
  });

  it('keeps a change that could not be sent', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('failed')));
    await editor.change({ concurrency: 9 });
    expect(editor.failed.value).toMatchObject({ isConflict: false, error: { code: 'unreachable' } });
    expect(editor.known.value?.version).toBe(3);
    editor.discard();
    expect(editor.failed.value).toBeUndefined();
  });
});
