import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { parseConfig } from '../../shared/config/config.js';
import { providerIds } from '../../shared/contract.js';
import { type ComposeProject, openComposeProject } from './support/compose-project.js';
import { docker } from './support/docker.js';

const [makeCredentials, up, chat, post, addUser, createToken, importPosts, scale, ...ends] = commandsOf(
  'With Docker',
) as [string, string, string, string, string, string, string, string, ...string[]];
const credentials = ['POSTGRES_PASSWORD', 'REDIS_PASSWORD', 'CHAT_PASSWORD', 'BLOG_TOKEN'];
const programs = ['api', ...providerIds.map((id) => `worker-${id}`)];

let project: ComposeProject;

/** A field of every container of a service. */
const inspect = async (service: string, format: string) =>
  (await docker('inspect', '--format', format, ...(await project.containers(service)))).split('\n');

const chatWith = (id: string, ...headers: string[]) =>
  project.run(
    chat.replace("'X-LLM: openai'", [`X-LLM: ${id}`, ...headers].map((header) => `'${header}'`).join(' -H ')),
  );

/** Each test goes on where the one before it has stopped: containers are started once. */
describe('docker compose', { timeout: 120_000 }, () => {
  beforeAll(async () => {
    project = await openComposeProject(inject('image'));
  });

  afterAll(() => project.remove());

  it.each(credentials)('refuses to start without %s, and says where to get it', async (name) => {
    const others = credentials.filter((other) => other !== name).map((other) => `${other}=x\n`);
    writeFileSync(join(project.dir, 'others'), others.join(''));
    const { code, stderr } = await project.tryCompose('--env-file', 'others', 'up', '--wait');
    expect(code).not.toBe(0);
    expect(stderr).toContain(`required variable ${name} is missing`);
    expect(stderr).toContain('With Docker in README.md');
  });

  it("takes credentials that the README's line makes once, for their owner's eyes", async () => {
    await project.run(makeCredentials);
    const file = join(project.dir, '.env');
    const made = readFileSync(file, 'utf8');
    expect(made.match(/^[A-Z_]+=[0-9a-f]{48}$/gm)).toHaveLength(credentials.length + 1);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    // npm start and the runners of a Procfile read the same file, and half a user is none.
    const elsewhere = { ...parseEnv(made), DATABASE_URL: 'postgres://127.0.0.1/none' };
    expect(parseConfig(elsewhere, 'api')).toMatchObject({
      CHAT_USERNAME: 'demo',
      ADMIN_USERNAME: 'admin',
    });
    await project.run(makeCredentials);
    expect(readFileSync(file, 'utf8')).toBe(made);
  });

  it("answers the README's first request within a minute of its start", async () => {
    const startedAt = performance.now();
    await project.run(up);
    expect(JSON.parse(await project.run(chat))).toEqual({ response: expect.stringContaining('Hello!') });
    const tookMs = performance.now() - startedAt;
    process.stdout.write(`From ${up} to the first reply: ${(tookMs / 1000).toFixed(1)} s, image built.\n`);
    expect(tookMs).toBeLessThan(60_000);
  });

  it('has every provider without a key simulated', async () => {
    const replies = await Promise.all(providerIds.map((id) => chatWith(id)));
    expect(replies).toEqual(providerIds.map((id) => expect.stringContaining(`Simulated ${id} reply`)));
  });

  it('publishes the API alone, for this machine alone, and runs nothing with more rights than it needs', async () => {
    const images = (await project.compose('config', '--images')).split('\n');
    for (const image of images) expect(image).toMatch(/:(?!latest)[\w.-]+$/);
    for (const service of programs) {
      const [facts] = await inspect(service, '{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}');
      expect(facts).toBe('true [ALL]');
    }
    const ports = await docker(
      'ps',
      '--filter',
      `label=com.docker.compose.project=${project.name}`,
      '--format',
      '{{.Ports}}',
    );
    expect(ports.match(/\S+->\S+/g)).toEqual([expect.stringMatching(/^127\.0\.0\.1:\d+->3000\/tcp$/)]);
    const variables = await inspect('worker-openai', '{{.Config.Env}}');
    expect(variables.join()).not.toMatch(/DATABASE_URL|PASSWORD=|BLOG_TOKEN/);
  });

  it('keeps the stores on a network of their own that leads nowhere, and metrics off the published port', async () => {
    const networks = (service: string) =>
      inspect(service, '{{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}').then(
        ([names = '']) => names.trim().replaceAll(`${project.name}_`, '').split(' '),
      );
    for (const service of programs) expect(await networks(service), service).toEqual(['front', 'store']);
    for (const service of ['postgres', 'redis']) expect(await networks(service), service).toEqual(['store']);
    expect(await networks('simulator')).toEqual(['front']);
    expect(await docker('network', 'inspect', '--format', '{{.Internal}}', `${project.name}_store`)).toBe(
      'true',
    );
    const status = await project.run("curl -s -o /dev/null -w '%{http_code}' http://localhost:3000/metrics");
    expect(status).toBe('404');
    const page = "console.log(await (await fetch('http://api:3003/metrics')).text())";
    const metrics = await project.compose('exec', '-T', 'worker-openai', 'node', '-e', page);
    expect(metrics).toMatch(/^# TYPE quillgate_/m);
  });

  it('keeps posts and the queue in volumes, on a Redis that throws nothing out', async () => {
    const { id } = JSON.parse(await project.run(post));
    const redis = (...args: string[]) => project.compose('exec', '-T', 'redis', 'redis-cli', ...args);
    expect(await redis('config', 'get', 'maxmemory-policy')).toMatch(/noeviction$/);
    expect(await redis('config', 'get', 'appendonly')).toMatch(/yes$/);
    await redis('set', 'kept', 'yes');
    await project.compose('rm', '--stop', '--force', '--volumes', 'postgres', 'redis');
    await project.compose('up', '--wait', 'postgres', 'redis');
    expect(await redis('get', 'kept')).toBe('yes');
    const posts = () => project.run('curl -s http://localhost:3000/blogs');
    await vi.waitFor(async () => expect(await posts()).toContain(id), { timeout: 20_000, interval: 250 });
  });

  it("makes a user and a token, and imports a folder of posts, by the README's lines", async () => {
    const secret = await project.run(addUser);
    const reply = chat.replace(/-u "[^"]*"/, `-u "ada:${secret}"`);
    expect(await project.run(reply)).toContain('Hello!');
    const token = await project.run(createToken);
    expect(await project.run(post.replace(/Bearer [^"]*"/, `Bearer ${token}"`))).toContain('"title":"Hello"');
    mkdirSync(join(project.dir, 'posts'));
    writeFileSync(join(project.dir, 'posts', 'imported.md'), '---\ntitle: Imported\n---\nFrom a folder.\n');
    await project.run(importPosts);
    expect(await project.run('curl -s http://localhost:3000/blogs')).toContain('From a folder.');
  });

  it('runs as many workers of one provider as it is told to', async () => {
    await project.run(scale);
    expect(await inspect('worker-openai', '{{.State.Health.Status}}')).toEqual(Array(3).fill('healthy'));
    expect(await inspect('worker-anthropic', '{{.State.Health.Status}}')).toEqual(['healthy']);
    expect(await chatWith('openai')).toContain('Hello!');
  });

  it('invents no text beside a real provider: the others are unavailable', async () => {
    writeFileSync(join(project.dir, 'key'), 'OPENAI_API_KEY=not-a-key\n');
    await project.compose('--env-file', '.env', '--env-file', 'key', 'up', '--wait');
    const refused = await chatWith('anthropic');
    expect(JSON.parse(refused)).toMatchObject({ code: 'provider_unavailable' });
    await project.compose('up', '--wait');
    expect(await chatWith('anthropic')).toContain('Simulated anthropic reply');
  });

  it('finishes what is in flight when it is told to stop, and ends with 0', async () => {
    const calls = 'http://127.0.0.1:3002/__simulator/calls?model=sim-latency-3000&wait=call&timeoutMs=30000';
    const began = project.compose('exec', '-T', 'simulator', 'node', '-e', `await fetch('${calls}')`);
    const reply = chatWith('openai', 'X-LLM-Model: sim-latency-3000');
    await began;
    await project.compose('stop', ...programs);
    expect(await reply).toContain('Simulated openai reply');
    for (const service of programs)
      for (const code of await inspect(service, '{{.State.ExitCode}}'))
        expect(`${service} ${code}`).toBe(`${service} 0`);
  });

  it("leaves nothing after the README's last command", async () => {
    for (const end of ends) await project.run(end);
    const label = `label=com.docker.compose.project=${project.name}`;
    const left = await Promise.all([
      docker('ps', '--all', '--quiet', '--filter', label),
      docker('volume', 'ls', '--quiet', '--filter', label),
      docker('network', 'ls', '--quiet', '--filter', label),
    ]);
    expect(left).toEqual(['', '', '']);
  });
});

/** The commands of a section of the README, as printed; lines that end with a backslash are one command. */
function commandsOf(section: string): string[] {
  const readme = readFileSync('README.md', 'utf8');
  const text = readme.split(`\n## ${section}\n`)[1]?.split('\n## ')[0];
  if (text === undefined) throw new Error(`The README has no section ${section}.`);
  return text
    .split('\n')
    .filter((line) => line.startsWith('    '))
    .map((line) => line.slice(4))
    .join('\n')
    .replaceAll('\\\n', ' ')
    .split('\n');
}
