import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { toCurl, toOpenAi } from '../../../console/playground/snippets.ts';

const request = {
  ...{ provider: 'bedrock', model: "it's", fallback: 'openai', wait: '30' },
  messages: [{ role: 'user' as const, content: 'Don\'t say "$HOME"\n`id`' }],
};

describe('toCurl', () => {
  it('is a command that sends just this, with any texts', () => {
    const curl = toCurl(request, 'https://gate.example/chat');
    expect(curl).toContain('-u "$CHAT_USERNAME:$CHAT_PASSWORD"');
    const command = curl.replace(/^curl/, "printf '%s\\0'");
    const words = execFileSync('sh', ['-c', command], { encoding: 'utf8' }).split('\0');
    expect(words).toContain("X-LLM-Model: it's");
    expect(words).toContain('X-LLM-Fallback: openai');
    expect(words).toContain('Prefer: wait=30');
    expect(words).toContain('https://gate.example/chat');
    const body = words[words.indexOf('-d') + 1] ?? '';
    expect(JSON.parse(body)).toEqual({ messages: request.messages });
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
});
