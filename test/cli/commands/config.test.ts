import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { describe, expect, it } from 'vitest';
import { printConfig, renderEnvExample } from '../../../cli/commands/config.js';
import { ConfigError, environmentSchema, parseConfig } from '../../../shared/config/config.js';
import { collectOutput } from '../output.js';

const root = resolve(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const names = Object.keys(environmentSchema.shape);
const secrets = [
  ...['CHAT_PASSWORD', 'BLOG_TOKEN', 'CHAT_TOKEN', 'DATABASE_URL', 'REDIS_URL'],
  ...['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GOOGLE_API_KEY'],
];

function print(...args: Parameters<typeof printConfig>): string {
  const output = collectOutput();
  printConfig(...args);
  return output.stdout;
}

describe('renderEnvExample', () => {
  it('is valid, and changes nothing, when all of it is uncommented', () => {
    const uncommented = parseEnv(renderEnvExample().replaceAll(/^#(?=[A-Z_]+=)/gm, ''));
    expect(Object.keys(uncommented).sort()).toEqual([...names].sort());
    expect(parseConfig(uncommented, 'config')).toEqual(parseConfig({}, 'config'));
  });

  it('has no empty heading, and one sentence for a variable that every provider has', () => {
    expect(renderEnvExample()).not.toMatch(/^## .*\n+##/m);
    expect(renderEnvExample()).toMatch(/^# .*\n#OPENAI_MODEL=.*\n#ANTHROPIC_MODEL=/m);
  });

  it('is what .env.example says: bin/quillgate config --env-example > .env.example', () => {
    expect(read('.env.example')).toBe(renderEnvExample());
  });
});

describe('printConfig', () => {
  it('says where npm start has another HOST, unless it is set', () => {
    const printed = print({}, {});
    expect(printed).toContain('\nHOST=0.0.0.0 # npm start: 127.0.0.1\n');
    expect(parseEnv(printed).HOST).toBe('0.0.0.0');
    expect(print({ HOST: '0.0.0.0' }, {})).toContain('\nHOST=0.0.0.0\n');
  });

  it('prints what is in force, defaults included, and nothing that is not set; it can be read back', () => {
    const environment = {
      PORT: '4000',
      OPENAI_MODEL: 'm',
      WORKER_PROVIDERS: 'openai,bedrock',
      HOST: '127.0.0.1',
    };
    const printed = print({ ...environment, CHAT_USERNAME: '' }, {});
    for (const line of [/^PORT=4000$/m, /^OPENAI_MODEL=m$/m, /^CHAT_TIMEOUT_MS=55000$/m])
      expect(printed).toMatch(line);
    expect(printed).not.toMatch(/CHAT_USERNAME|OPENAI_API_KEY/);
    expect(parseConfig(parseEnv(printed), 'config')).toEqual(parseConfig(environment, 'config'));
  });

  // `optional()` and `describe()` come after the mark, and zod does not look for it inside what they wrap.
  it.each(secrets)('prints of %s only that it is set', (name) => {
    const scheme = name === 'REDIS_URL' ? 'redis' : 'postgres';
    const url = `${scheme}://user:canary@localhost`;
    const value = name.endsWith('_URL') ? url : 'canary-of-a-secret-in-the-configuration';
    const printed = print({ [name]: value }, {});
    expect(printed).not.toContain('canary');
    expect(printed).toMatch(new RegExp(`^${name}=\\(set\\)$`, 'm'));
  });

  it('throws every problem of a bad configuration; the generated file does not depend on it', () => {
    expect(() => print({ PORT: 'x', LOG_LEVEL: 'y' }, {})).toThrow(ConfigError);
    expect(print({ PORT: 'x' }, { envExample: true })).toBe(renderEnvExample());
  });
});
