import { describe, expect, it } from 'vitest';
import { addRequest, isWanted, maxShown, queryOf } from '../../../console/requests/recent.ts';
import { recentRequest } from '../../support/history.js';

const all = { provider: '', code: '', user: '' };

describe('queryOf', () => {
  it('asks for what is wanted alone', () => {
    expect(queryOf(all)).toBe('limit=200');
    expect(queryOf({ provider: 'openai', code: 'ok', user: ' Ben & Ö ' })).toBe(
      'limit=200&provider=openai&code=ok&user=Ben+%26+%C3%96',
    );
  });
});

describe('isWanted', () => {
  it('is as the API chooses', () => {
    const request = recentRequest({ user: 'anna' });
    expect(isWanted(all, request)).toBe(true);
    expect(isWanted({ provider: 'openai', code: 'ok', user: 'anna ' }, request)).toBe(true);
    for (const other of [{ provider: 'bedrock' }, { code: 'timeout' }, { user: 'ann' }])
      expect(isWanted({ ...all, ...other }, request)).toBe(false);
  });
});

describe('addRequest', () => {
  it('puts the newest first, each once, and keeps no more than are shown', () => {
    const a = recentRequest({ id: 'a' });
    const b = recentRequest({ id: 'b' });
    const two = addRequest([a], b);
    expect(two.map(({ id }) => id)).toEqual(['b', 'a']);
    expect(addRequest(two, a)).toBe(two);
    let many = two;
    for (let n = 0; n < 300; n += 1) many = addRequest(many, recentRequest({ id: `${n}` }));
    expect(many).toHaveLength(maxShown);
    expect(many[0]?.id).toBe('299');
  });
});
