import type { ProviderId } from '../../../shared/contract.js';
import { send, type TestRequest } from './requests.js';

/** The text and the calls of a reply, as its client would put them together. */
export interface ReadReply {
  status: number;
  text: string;
  calls: { name?: string | undefined; arguments: string }[];
  end?: string | undefined;
  /** The blocks before the text, or the signature of the first call. */
  signed: unknown[];
  /** The pieces of arguments, in a stream. */
  pieces: string[];
}

type Json = ReturnType<typeof JSON.parse>;

/** Sends a request and reads the reply, streamed or not; of a refused one only its text. */
export async function ask(url: string, request: TestRequest, provider: ProviderId): Promise<ReadReply> {
  const response = await send(url, request);
  const bytes = Buffer.from(await response.arrayBuffer());
  const reply: ReadReply = { status: response.status, text: '', calls: [], signed: [], pieces: [] };
  if (response.status !== 200) return { ...reply, text: bytes.toString() };
  for (const event of events(bytes, response.headers.get('content-type') ?? ''))
    readers[provider](event, reply);
  return reply;
}

function events(bytes: Buffer, type: string): Json[] {
  if (type.startsWith('application/vnd.amazon')) return frames(bytes);
  if (!type.startsWith('text/event-stream')) return [JSON.parse(bytes.toString())];
  return [...bytes.toString().matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data));
}

/** The payloads of frames, under the names of their events. */
function frames(bytes: Buffer): Json[] {
  const found: Json[] = [];
  for (let at = 0; at < bytes.length; at += bytes.readUInt32BE(at)) {
    const headers = bytes.readUInt32BE(at + 4);
    const name = /:event-type.{3}(\w+)/s.exec(bytes.toString('latin1', at + 12, at + 12 + headers))?.[1];
    const payload = bytes.toString('utf8', at + 12 + headers, at + bytes.readUInt32BE(at) - 4);
    found.push({ [name ?? '']: JSON.parse(payload) });
  }
  return found;
}

const append = (reply: ReadReply, piece: string): void => {
  const last = reply.calls.at(-1);
  if (last) last.arguments += piece;
  reply.pieces.push(piece);
};

const readers: Record<ProviderId, (event: Json, reply: ReadReply) => void> = {
  openai({ choices: [choice] }, reply) {
    if (choice === undefined) return;
    const said = choice.message ?? choice.delta;
    reply.text += said.content ?? '';
    for (const call of said.tool_calls ?? []) {
      if (call.id) reply.calls.push({ name: call.function.name, arguments: '' });
      append(reply, call.function.arguments);
    }
    reply.end = choice.finish_reason ?? reply.end;
  },
  anthropic(event, reply) {
    const { content_block: block, delta = {}, content = [] } = event;
    for (const each of content) {
      if (each.type === 'tool_use')
        reply.calls.push({ name: each.name, arguments: JSON.stringify(each.input) });
      else if (each.type === 'text') reply.text += each.text;
      else reply.signed.push(each);
    }
    if (block?.type === 'tool_use') reply.calls.push({ name: block.name, arguments: '' });
    if (/thinking/.test(block?.type)) reply.signed.push(block);
    if (delta.type === 'thinking_delta' || delta.type === 'signature_delta') {
      const last = reply.signed.at(-1) as Json;
      last.thinking += delta.thinking ?? '';
      last.signature += delta.signature ?? '';
    }
    reply.text += delta.text ?? '';
    if (delta.partial_json !== undefined) append(reply, delta.partial_json);
    reply.end = event.stop_reason ?? delta.stop_reason ?? reply.end;
  },
  bedrock({ output, stopReason, contentBlockStart, contentBlockDelta, messageStop }, reply) {
    for (const { text = '', toolUse, reasoningContent } of output?.message.content ?? []) {
      reply.text += text;
      if (toolUse) reply.calls.push({ name: toolUse.name, arguments: JSON.stringify(toolUse.input) });
      if (reasoningContent) reply.signed.push(reasoningContent);
    }
    if (contentBlockStart) reply.calls.push({ name: contentBlockStart.start.toolUse.name, arguments: '' });
    const { text = '', toolUse, reasoningContent } = contentBlockDelta?.delta ?? {};
    reply.text += text;
    if (toolUse) append(reply, toolUse.input);
    if (reasoningContent) {
      const { contentBlockIndex: index } = contentBlockDelta;
      const { text: thought = '', signature, redactedContent } = reasoningContent;
      const said = (reply.signed[index] as Json | undefined)?.reasoningText?.text ?? thought;
      reply.signed[index] = redactedContent ? reasoningContent : { reasoningText: { text: said, signature } };
    }
    reply.end = stopReason ?? messageStop?.stopReason ?? reply.end;
  },
  vertexai({ candidates: [candidate] }, reply) {
    for (const { text = '', functionCall, thoughtSignature } of candidate.content.parts) {
      reply.text += text;
      if (functionCall)
        reply.calls.push({ name: functionCall.name, arguments: JSON.stringify(functionCall.args) });
      if (thoughtSignature) reply.signed.push(thoughtSignature);
    }
    reply.end = candidate.finishReason ?? reply.end;
  },
};
