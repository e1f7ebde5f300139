import { execFile } from 'node:child_process';
import { cpSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv, promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../shared/config/config.js';
import { plant } from '../support/folders.js';

/** The file after a run of the script, from any folder. */
async function make(before?: string) {
  const dir = plant({ ...(before !== undefined && { '.env': before }) });
  const script = join(dir, 'deploy/make-credentials');
  cpSync('deploy/make-credentials', script);
  await promisify(execFile)(script, { cwd: tmpdir() });
  const file = join(dir, '.env');
  return { text: readFileSync(file, 'utf8'), mode: statSync(file).mode & 0o777 };
}

const secrets = ['POSTGRES_PASSWORD', 'REDIS_PASSWORD', 'CHAT_PASSWORD', 'ADMIN_PASSWORD', 'BLOG_TOKEN'];

describe('deploy/make-credentials', () => {
  it('without a file -> makes one for its owner alone, which the API takes', async () => {
    const { text, mode } = await make();
    const made = parseEnv(text);
    expect(Object.keys(made).sort()).toEqual(['ADMIN_USERNAME', 'CHAT_USERNAME', ...secrets].sort());
    expect(new Set(secrets.map((name) => made[name])).size).toBe(secrets.length);
    expect(mode).toBe(0o600);
    const environment = { ...made, DATABASE_URL: 'postgres://127.0.0.1/none' };
    expect(parseConfig(environment, 'api')).toMatchObject({ CHAT_USERNAME: 'demo', ADMIN_USERNAME: 'admin' });
  });

  it('run twice -> changes nothing', async () => {
    const { text } = await make();
    expect((await make(text)).text).toBe(text);
  });

  it.each([
    ['a last line without an end', 'CHAT_USERNAME=ada\nOPENAI_API_KEY=key\nCHAT_PASSWORD=kept'],
    ['names in comments', '#CHAT_PASSWORD=old\nCHAT_USERNAME=ada\nCHAT_PASSWORD=kept\nOPENAI_API_KEY=key\n'],
  ])('a file with %s -> keeps it and adds the rest', async (_, before) => {
    const { text: after } = await make(before);
    expect(after.startsWith(before)).toBe(true);
    expect(parseEnv(after)).toMatchObject({
      CHAT_USERNAME: 'ada',
      CHAT_PASSWORD: 'kept',
      OPENAI_API_KEY: 'key',
      ADMIN_USERNAME: 'admin',
      BLOG_TOKEN: expect.stringMatching(/^[0-9a-f]{48}$/),
    });
  });

  it('a name that is set to nothing -> gets a value', async () => {
    expect(parseEnv((await make('REDIS_PASSWORD=\n')).text).REDIS_PASSWORD).toMatch(/^[0-9a-f]{48}$/);
  });
});
