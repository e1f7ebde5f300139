import { createConfig, lintFromString } from '@redocly/openapi-core';
import spectral, { type RulesetDefinition } from '@stoplight/spectral-core';
import { oas } from '@stoplight/spectral-rulesets';
import { describe, expect, it } from 'vitest';
import { describeApi } from '../../api/app.js';
import { parseConfig } from '../../shared/config/config.js';
import { type OpenApiDocument, operationsOf } from '../support/openapi-document.js';

/** Public addresses, as an installation has them: Redocly objects to the defaults, which name this machine. */
const addresses = {
  CHAT_BASE_URL: 'https://api.quillgate.invalid',
  CHAT_BASE_URL_ALT: 'https://api.quillgate.invalid/v1',
  BLOG_BASE_URL: 'https://api.quillgate.invalid',
};

describe.each(['public', 'token'])('the OpenAPI document of a blog that is read as %s', (BLOG_READS) => {
  const document = describeApi(parseConfig({ ...addresses, BLOG_READS }, 'config')) as OpenApiDocument;
  const source = JSON.stringify(document);

  it('-> passes the recommended rules of Redocly', async () => {
    const config = await createConfig({ extends: ['recommended'] });
    const problems = await lintFromString({ source, config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual(
      [],
    );
  });

  it('-> passes the recommended rules of Spectral', async () => {
    const linter = new spectral.Spectral();
    linter.setRuleset({ extends: [oas as RulesetDefinition] });
    const problems = await linter.run(source);
    expect(problems.map(({ code, message, path }) => [code, message, path.join('/')])).toEqual([]);
  });

  // tsoa makes one header, with the name of the type, of headers that are given as a named type.
  it('-> has no header that is named for a type', () => {
    const headers = operationsOf(document)
      .flatMap(({ operation }) => Object.values(operation.responses))
      .flatMap((response) => Object.entries(response.headers ?? {}));
    expect(headers.filter(([, header]) => JSON.stringify(header).includes('"$ref"'))).toEqual([]);
  });
});
