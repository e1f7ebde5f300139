/** What the simulator's `sim-timestamps` writes for each delta: when it was sent, in milliseconds since the epoch, and a blank. */
const timestampLength = '1700000000000.000 '.length;

/**
 * Reads a stream of timestamps from server-sent events, ours or OpenAI's, as they arrive in pieces of any size, and notices whatever is
 * missing, twice or out of order.
 */
export class StreamReader {
  events = 0;
  #rest = '';
  #text = '';
  #read = 0;
  #last = 0;
  #end: string | undefined;
  #flaw: string | undefined;

  /** The timestamps that have become complete with this piece. */
  add(piece: string): number[] {
    this.#rest += piece;
    const before = this.#read;
    for (let end = this.#rest.indexOf('\n\n'); end >= 0; end = this.#rest.indexOf('\n\n')) {
      this.#addEvent(this.#rest.slice(0, end));
      this.#rest = this.#rest.slice(end + 2);
    }
    const timestamps: number[] = [];
    for (let at = before; at + timestampLength <= this.#text.length; at += timestampLength)
      timestamps.push(this.#timestampAt(at));
    return timestamps;
  }

  /** What is wrong with the stream, when nothing more comes; it should have had so many deltas. */
  flaw(deltas: number): string | undefined {
    if (this.#flaw) return this.#flaw;
    if (this.#end === undefined) return 'no end';
    return this.#text.length === deltas * timestampLength ? undefined : 'deltas lost or twice';
  }

  #timestampAt(at: number): number {
    const timestamp = Number(this.#text.slice(at, at + timestampLength));
    if (!(timestamp >= this.#last)) this.#flaw ??= 'deltas out of order';
    this.#last = timestamp;
    this.#read = at + timestampLength;
    return timestamp;
  }

  #addEvent(event: string): void {
    const data = /^data: (.*)$/m.exec(event)?.[1];
    if (data === undefined) return;
    if (this.#end !== undefined) this.#flaw ??= 'something after the end';
    if (data === '[DONE]') this.#end = data;
    else this.#addData(/^event: (\w+)$/m.exec(event)?.[1], JSON.parse(data));
  }

  #addData(name: string | undefined, data: EventData): void {
    const text = name === 'delta' ? data.delta : data.choices?.[0]?.delta?.content;
    if (typeof text === 'string' && text !== '') {
      this.events += 1;
      this.#text += text;
    }
    if (name === 'done' && data.response !== this.#text) this.#flaw ??= 'the deltas are not the response';
    if (name === 'error') this.#flaw ??= `error: ${data.code}`;
    if (name === 'done' || name === 'error') this.#end = name;
  }
}

interface EventData {
  delta?: string;
  response?: string;
  code?: string;
  choices?: { delta?: { content?: string | null } }[];
}
