import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { startCredentials } from '../../dev/stores.js';
import { parseConfig } from '../../shared/config/config.js';
import { makeFolder } from '../support/folders.js';

let DATA_DIR: string;
beforeEach(() => {
  DATA_DIR = makeFolder();
});
const secret = 'not a secret in a test';
const credentials = (variables: Record<string, string> = {}) =>
  startCredentials(parseConfig({ DATA_DIR, ...variables }, 'start'));

describe('the credentials of a start', () => {
  it('that the environment does not name -> are made once, for the eyes of their owner', () => {
    const made = credentials();
    expect(credentials()).toEqual(made);
    expect([made.credentials.username, made.admin.username]).toEqual(['demo', 'admin']);
    const file = join(DATA_DIR, 'chat-credentials');
    expect(readFileSync(file, 'utf8')).toBe(`demo:${made.credentials.password}\n`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('of a chat user that has the name of the operator -> get another operator', () => {
    const { admin } = credentials({ CHAT_USERNAME: 'admin', CHAT_PASSWORD: secret });
    expect(admin.username).toBe('operator');
  });

  it.each([
    ['CHAT_PASSWORD', { CHAT_USERNAME: 'ada' }],
    ['ADMIN_USERNAME', { ADMIN_PASSWORD: secret }],
    ['ADMIN_USERNAME', { ADMIN_USERNAME: 'demo', ADMIN_PASSWORD: secret }],
  ])('without a proper %s, %j -> are refused by its name', (name, variables) => {
    expect(() => credentials(variables)).toThrow(new RegExp(`${name}: must`));
  });

  it.each([
    ['chat-credentials', 'demo:short'],
    ['blog-token', 'too short'],
  ])('of a file %s that does not hold them -> are refused by its name', (file, text) => {
    writeFileSync(join(DATA_DIR, file), text);
    expect(() => credentials()).toThrow(new RegExp(`DATA_DIR: .*${file} does not hold`));
  });
});
