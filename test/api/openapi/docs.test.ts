import express from 'express';
import { afterAll, describe, expect, it } from 'vitest';
import { docsRouter } from '../../../api/openapi/docs.js';
import { serve } from '../../support/serve.js';

const server = await serve(express().use(docsRouter({})));
afterAll(() => server.close());

/** The part of Swagger UI's options that decides about locks. */
interface Options {
  plugins: (() => {
    statePlugins: {
      auth: { wrapSelectors: { isAuthorized: (original: (asked: unknown) => unknown) => IsAuthorized } };
    };
  })[];
}
/** Given the state and what an operation asks for, as maps by the name of the scheme. */
type IsAuthorized = (state: object, asked: Map<string, string[]>[]) => unknown;

describe('/docs', () => {
  it('shows an operation that may be asked without credentials as open, not as unlocked by some', async () => {
    const script = await (await fetch(`${server.url}/docs/start.js`)).text();
    const options: Options[] = [];
    new Function('SwaggerUIBundle', script)((given: Options) => options.push(given));
    const wrap = options[0]?.plugins[0]?.().statePlugins.auth.wrapSelectors.isAuthorized;
    const isAuthorized = wrap?.((asked) => asked);
    const bearer = new Map([['bearer', []]]);
    expect(isAuthorized?.({}, [bearer, new Map()])).toEqual([bearer]);
    expect(isAuthorized?.({}, [bearer])).toEqual([bearer]);
  });
});
