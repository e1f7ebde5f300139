// Holds the OpenAPI document, as the built API serves it, against the recommended rules of Redocly and Spectral. Needs
// no network: both are asked as libraries. Prints what they find, and ends with 1 when that is anything.
import { createConfig, lintFromString } from '@redocly/openapi-core';
import spectral from '@stoplight/spectral-core';
import { oas } from '@stoplight/spectral-rulesets';
import { describeApi } from '../dist/api/app.js';

// Public addresses, as an installation has them: the defaults are this machine's, which Redocly objects to.
const addresses = {
  CHAT_BASE_URL: 'https://api.quillgate.invalid',
  CHAT_BASE_URL_ALT: 'https://api.quillgate.invalid/v1',
  BLOG_BASE_URL: 'https://api.quillgate.invalid',
};

async function redocly(source) {
  const config = await createConfig({ extends: ['recommended'] });
  const problems = await lintFromString({ source, config });
  return problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer})`);
}

async function spectrally(source) {
  const linter = new spectral.Spectral();
  linter.setRuleset({ extends: [oas] });
  const problems = await linter.run(source);
  return problems.map(({ code, message, path }) => `${code}: ${message} (${path.join('/')})`);
}

/** tsoa makes one header, with the name of the type, of headers that are given as a named type. */
function headersOfTypes({ paths }) {
  const operations = Object.values(paths).flatMap((item) => Object.values(item));
  const headers = operations
    .flatMap(({ responses = {} }) => Object.values(responses))
    .flatMap((response) => Object.entries(response.headers ?? {}));
  return headers
    .filter(([, { schema }]) => schema?.$ref)
    .map(([name]) => `header-of-type: ${name} is a type of ours and no header`);
}

const found = [];
for (const BLOG_READS of ['public', 'token']) {
  const document = describeApi({ ...addresses, BLOG_READS });
  const source = JSON.stringify(document);
  found.push(...(await redocly(source)), ...(await spectrally(source)), ...headersOfTypes(document));
}
if (found.length > 0) {
  process.stderr.write(`The OpenAPI document:\n${[...new Set(found)].map((line) => `  ${line}\n`).join('')}`);
  process.exitCode = 1;
}
