import { type ExecFileOptions, execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeFolder, plant } from '../support/folders.js';
import { serve } from '../support/serve.js';

const advisory = {
  id: 1,
  url: 'https://example.com/1',
  title: 'Answers with the private key',
  severity: 'high',
  vulnerable_versions: '<99',
  cwe: [],
  cvss: { score: 8, vectorString: null },
};

/** npm takes its time to load on a busy machine. */
describe('the audit', () => {
  it.each([
    [200, {}, 0, /0 packages/],
    [200, { express: [{ ...advisory, severity: 'moderate' }] }, 0, /^moderate: express.*Answers/m],
    [200, { express: [advisory] }, 1, /^high: express.*Answers/m],
    [503, {}, 3, /^NOT AUDITED: the registry/],
  ])(
    'of a registry that answers %i with %j ends with %i, and says so',
    async (status, advisories, code, said) => {
      const ended = await auditAgainst(status, advisories);
      expect(ended.code).toBe(code);
      expect(ended.stdout + ended.stderr).toMatch(said);
    },
  );

  it('fails when npm cannot even ask', async () => {
    const folder = plant({ 'package.json': '{}' });
    const { code, stderr } = await run(process.execPath, [resolve('dev/release/audit.mjs')], { cwd: folder });
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^NOT AUDITED: .*lockfile/) });
  });
});

/** Runs it against a registry that answers every audit so, and knows of no package. */
async function auditAgainst(status: number, advisories: object) {
  const registry = await serve((request, response) => {
    const audited = request.url?.startsWith('/-/npm/v1/security/');
    response.writeHead(audited ? status : 404, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(advisories));
  });
  onTestFinished(registry.close);
  // npm remembers advisories, and shall not remember these.
  const env = { PATH: process.env.PATH, npm_config_registry: registry.url, npm_config_cache: makeFolder() };
  return run(process.execPath, ['dev/release/audit.mjs'], { env });
}

const run = (command: string, args: string[], options: ExecFileOptions) =>
  new Promise<{ code: number; stdout: string; stderr: string }>((done) => {
    execFile(command, args, { ...options, encoding: 'utf8' }, (error, stdout, stderr) =>
      done({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
