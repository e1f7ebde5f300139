import { request } from 'node:http';
import express from 'express';
import { afterAll, describe, expect, it } from 'vitest';
import { createUserCheck, expressAuthentication } from '../../api/authentication.js';
import { problemHandler } from '../../api/problem.js';
import { createRecordingLog } from '../support/recording-log.js';
import { serve } from '../support/serve.js';

const name = 'Jürgen 🎉';
const secret = 'a:secret: with: colons 🎉';
const encode = (text: string | Uint8Array) => Buffer.from(text).toString('base64');
const good = encode(`${name}:${secret}`);

const app = express();
app.locals.checkUser = createUserCheck({ name, secret });
app.get('/', async (request, response) => {
  const user = await expressAuthentication(request, 'basic');
  response.json(user);
});
app.use(problemHandler(createRecordingLog().log));
const server = await serve(app);
afterAll(() => server.close());

const ask = (authorization?: string) =>
  fetch(server.url, { headers: authorization === undefined ? {} : { Authorization: authorization } });

describe('expressAuthentication', () => {
  it.each([`Basic ${good}`, `basic ${good}`, `BASIC   ${good}`, `Basic ${good.replace(/=+$/, '')}`])(
    'knows the user by %j',
    async (authorization) => {
      const response = await ask(authorization);
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({ name });
    },
  );

  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['the scheme alone', 'Basic'],
    ['the scheme and a blank', 'Basic '],
    ['no blank', `Basic${good}`],
    ['another scheme', `Bearer ${good}`],
    ['two credentials', `Basic ${good} ${good}`],
    ['two schemes', `Basic ${good}, Basic ${good}`],
    ['plain text', `Basic ${encodeURIComponent(name)}:secret`],
    ['what is not base64', 'Basic %%%%'],
    ['padding alone', 'Basic ===='],
    ['no colon', `Basic ${encode(name)}`],
    ['a colon alone', `Basic ${encode(':')}`],
    ['an empty secret', `Basic ${encode(`${name}:`)}`],
    ['an empty name', `Basic ${encode(`:${secret}`)}`],
    ['the secret up to its colon', `Basic ${encode(`${name}:a`)}`],
    ['a secret that goes on', `Basic ${encode(`${name}:${secret}x`)}`],
    ['a NUL at the end', `Basic ${encode(`${name}:${secret}\0`)}`],
    ['another case of the name', `Basic ${encode(`${name.toLowerCase()}:${secret}`)}`],
    ['Latin-1', `Basic ${encode(Buffer.from(`${name}:${secret}`, 'latin1'))}`],
    ['bytes that are not UTF-8', `Basic ${encode(Buffer.from([0xff, 0x3a, 0xfe]))}`],
    ['10 KB of base64', `Basic ${encode('x:'.repeat(3750))}`],
    ['10 KB of blanks', `Basic ${' '.repeat(10_000)}x!`],
    ['10 KB of padding', `Basic x${'='.repeat(10_000)}!`],
  ])('refuses %s, and says how to do it', async (_, authorization) => {
    const response = await ask(authorization);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Basic realm="chat", charset="UTF-8"');
    expect(await response.json()).toMatchObject({ code: 'unauthorized' });
  });

  it('goes by the first of two headers', async () => {
    const status = (first: string, second: string) =>
      new Promise<number | undefined>((resolve) => {
        const headers = ['Authorization', first, 'Authorization', second];
        request(server.url, { headers: ['Host', 'x', ...headers] }, (response) => {
          response.resume();
          resolve(response.statusCode);
        }).end();
      });
    expect(await status('Basic eDp5', `Basic ${good}`)).toBe(401);
    expect(await status(`Basic ${good}`, 'Basic eDp5')).toBe(200);
  });
});

describe('createUserCheck', () => {
  it('does not take a part of the secret for a part of the name', () => {
    const check = createUserCheck({ name: 'a', secret: 'b:c' });
    expect(check('a', 'b:c')).toEqual({ name: 'a' });
    expect(check('a', 'b')).toBeUndefined();
    expect(check('', 'a:b:c')).toBeUndefined();
  });
});
