import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { toCurl, toFetch, toOpenAi } from '../../../console/playground/request.ts';

const request = {
  ...{ provider: 'bedrock', model: "it's", fallback: 'openai', wait: '30' },
  tool: { name: '', description: '', parameters: '' },
  messages: [{ role: 'user' as const, content: 'Don\'t say "$HOME"\n`id`' }],
};
const parameters = { type: 'object', additionalProperties: false, description: 'not true' };
const withTool = {
  ...request,
  tool: { name: 'look', description: '', parameters: JSON.stringify(parameters) },
};
const tools = [{ type: 'function', function: { name: 'look', parameters } }];

/** The words that a shell makes of the command. */
const wordsOf = (curl: string): string[] =>
  execFileSync('sh', ['-c', curl.replace(/^curl/, "printf '%s\\0'")], { encoding: 'utf8' }).split('\0');

describe('toCurl', () => {
  it('is a command that sends just this, with any texts', () => {
    const curl = toCurl(request, 'https://gate.example/chat');
    expect(curl).toContain('-u "$CHAT_USERNAME:$CHAT_PASSWORD"');
    const words = wordsOf(curl);
    expect(words).toContain("X-LLM-Model: it's");
    expect(words).toContain('X-LLM-Fallback: openai');
    expect(words).toContain('Prefer: wait=30');
    expect(words).toContain('https://gate.example/chat');
    const body = words[words.indexOf('-d') + 1] ?? '';
    expect(JSON.parse(body)).toEqual({ messages: request.messages });
  });

  it('asks OpenAI’s API where there is a tool', () => {
    const words = wordsOf(toCurl(withTool, 'https://gate.example/api/chat'));
    expect(words).toContain('https://gate.example/v1/chat/completions');
    const body = JSON.parse(words[words.indexOf('-d') + 1] ?? '');
    expect(body).toMatchObject({ model: "bedrock/it's", messages: request.messages, tools, stream: true });
  });
});

describe('toOpenAi', () => {
  it('names provider and model as OpenAI’s API has them, and what it has no name for as headers', () => {
    const text = toOpenAi(request, 'https://gate.example');
    expect(text).toContain('base_url="https://gate.example/v1", api_key=os.environ["CHAT_TOKEN"]');
    expect(text).toContain('model="bedrock/it\'s"');
    expect(text).toContain('extra_headers={"X-LLM-Fallback":"openai","Prefer":"wait=30"}');
    expect(text).toContain(`messages=${JSON.stringify(request.messages)}`);
  });

  it('writes a tool as Python', () => {
    const text = toOpenAi(withTool, 'https://gate.example');
    expect(text).toContain('"additionalProperties":False,"description":"not true"');
  });
});

describe('toFetch', () => {
  it('is a program that sends just this, with any texts, and writes what comes', async () => {
    const sent: { url: string; init: RequestInit }[] = [];
    const written: string[] = [];
    const program = new AsyncFunction('fetch', 'process', toFetch(request, 'https://gate.example/chat'));
    const answer = async (url: string, init: RequestInit) => {
      sent.push({ url, init });
      return new Response('data: Hi');
    };
    const env = { CHAT_USERNAME: 'ann', CHAT_PASSWORD: 'secret' };
    await program(answer, { env, stdout: { write: (text: string) => written.push(text) } });
    expect(sent).toMatchObject([{ url: 'https://gate.example/chat', init: { method: 'POST' } }]);
    expect(sent[0]?.init.headers).toMatchObject({
      ...{ Authorization: `Basic ${btoa('ann:secret')}`, 'X-LLM-Model': "it's", Prefer: 'wait=30' },
    });
    expect(JSON.parse(String(sent[0]?.init.body))).toEqual({ messages: request.messages });
    expect(written.join('')).toBe('data: Hi');
  });
});

/** The constructor of asynchronous functions has no name of its own. */
const AsyncFunction = Object.getPrototypeOf(async () => undefined).constructor;
