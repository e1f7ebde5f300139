import { createHash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';

/**
 * Reads and writes JSON text: a small one in the thread that asks, a large one in a thread of which this is the program
 * as well (`JsonThread`). It imports no file of this project, so that it also starts from its source: Node strips
 * types, but does not resolve `.js` to `.ts`.
 */

/** Limits of JSON text that is read. */
export interface TreeLimits {
  /** Levels of objects and arrays. */
  maxDepth: number;
  /** Members of all objects and arrays together; an empty one counts as one. */
  maxValues: number;
  /** The word that begins texts in the place of numbers that JavaScript would change; absent where they may change. */
  digits?: string | undefined;
}

/** The value of a text, or why there is none: it is `malformed`, or a phrase says what is wrong with it. */
export type ReadJson = { value: unknown } | { malformed: true } | { excess: string };

/** The values of a chat that are written: turns with parameters, where they are not undefined, or a body. */
export type ChatValues =
  | { readonly turns: unknown; readonly parameters?: unknown }
  | { readonly body: MarkedBody };

/** A body in which words stand for what is written otherwise. */
export interface MarkedBody {
  readonly value: unknown;
  /** The beginning of each word, which no caller can guess: its digits follow, or a full stop in the place of bytes. */
  readonly mark: string;
}

/** JSON text of each value; in that of a body each line feed, which JSON text has nowhere else, stands for bytes. */
export type ChatTexts = { turns: string; parameters?: string } | { body: string };

/** `{"turns":…,"parameters":…}` or `{"body":…}` as text in UTF-8, in memory of its own. */
export interface ChatBytes {
  bytes: Uint8Array<ArrayBuffer>;
  /** How many bytes those are: they are dropped once they are stored. */
  size: number;
  /** The digest of the bytes, in hexadecimal. */
  sha256: string;
  /** Where the text of the turns or the body begins, and where it ends. */
  place: readonly [start: number, end: number];
}

/** JSON text with words in the place of other texts. */
export interface Filling {
  text: string;
  /** The beginning of each word, which no caller can guess; the place of its text and a full stop follow. */
  mark: string;
  texts: readonly string[];
}

/** The whole of it in UTF-8, in memory of its own. */
export interface FilledText {
  bytes: Uint8Array<ArrayBuffer>;
}

/** The most bytes in UTF-8 that the texts of a chat have together as `ChatTexts`. */
export const maxTextBytes = 1_048_576;

/** A message to the thread. */
export type JsonTask = { read: Uint8Array; limits: TreeLimits } | { write: ChatValues } | { fill: Filling };

/** The `workerData` of the thread: other threads import this file as well. */
export const jsonThreadName = 'json';

if (workerData === jsonThreadName) parentPort?.on('message', answer);

function answer(task: JsonTask): void {
  const result = resultOf(task);
  parentPort?.postMessage(result, 'bytes' in result ? [result.bytes.buffer] : []);
}

function resultOf(task: JsonTask): ReadJson | ChatTexts | ChatBytes | FilledText {
  if ('read' in task) return readJson(task.read, task.limits);
  return 'write' in task ? writeChat(task.write) : fillText(task.fill);
}

/** Reads JSON text in UTF-8 (RFC 8259; a byte order mark is malformed) whose strings are well-formed Unicode. */
export function readJson(bytes: Uint8Array, limits: TreeLimits): ReadJson {
  const { excess } = measureTree(bytes, limits);
  if (excess !== undefined) return { excess };
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    const value = limits.digits === undefined ? JSON.parse(text) : parseMarking(text, limits.digits);
    return isWellFormed(value) ? { value } : { excess: 'has text that is not well-formed Unicode' };
  } catch {
    // The parser's message quotes the text.
    return { malformed: true };
  }
}

// ES2025's, which the compiler does not know yet.
const { parse } = JSON as unknown as {
  parse: (
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ) => unknown;
};

/** Numbers of so many digits, or with an exponent, may change; the way around them takes several times as long. */
const mayChange = /\d{16}|\d[eE]/;

/** Parses JSON text with the digits of numbers that would change behind `mark`. */
const parseMarking = (text: string, mark: string): unknown =>
  mayChange.test(text)
    ? parse(text, (_, value, { source = '' }) =>
        typeof value === 'number' && String(value) !== source ? `${mark}${source}` : value,
      )
    : JSON.parse(text);

/** Writes the texts of a chat; as bytes if they have more than `maxTextBytes`. */
export function writeChat(chat: ChatValues): ChatTexts | ChatBytes {
  const texts = 'body' in chat ? { body: writeBody(chat.body) } : writeTurns(chat);
  const [name, first] = 'body' in texts ? ['body', texts.body] : ['turns', texts.turns];
  const head = `{"${name}":`;
  const others = 'parameters' in texts ? `,"parameters":${texts.parameters}}` : '}';
  const end = head.length + Buffer.byteLength(first);
  const size = end + Buffer.byteLength(others);
  if (size - head.length <= maxTextBytes) return texts;
  const bytes = Buffer.from(new ArrayBuffer(size));
  bytes.write(head);
  bytes.write(first, head.length);
  bytes.write(others, end);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { bytes, size, sha256, place: [head.length, end] };
}

const writeTurns = ({ turns, parameters }: Extract<ChatValues, { turns: unknown }>) => ({
  turns: JSON.stringify(turns),
  ...(parameters !== undefined && { parameters: JSON.stringify(parameters) }),
});

const writeBody = ({ value, mark }: MarkedBody): string =>
  JSON.stringify(value).replaceAll(new RegExp(`"${mark}([-+.\\deE]+)"`, 'g'), (_, digits: string) =>
    digits === '.' ? '"\n"' : digits,
  );

/** Writes JSON text in UTF-8 with each text in the place of its words. */
export function fillText({ text, mark, texts }: Filling): FilledText {
  const quoted = texts.map((each) => Buffer.from(JSON.stringify(each).slice(1, -1)));
  const pieces = text.split(mark).flatMap((piece, n) => {
    if (n === 0) return [Buffer.from(piece)];
    const end = piece.indexOf('.');
    return [quoted[Number(piece.slice(0, end))] ?? Buffer.alloc(0), Buffer.from(piece.slice(end + 1))];
  });
  return { bytes: new Uint8Array(Buffer.concat(pieces)) };
}

/** How many bytes texts take on the queue; those in a job, whose stores write it as JSON, are quoted twice. */
export const queuedBytesOf = (texts: ChatTexts | ChatBytes): number =>
  'bytes' in texts
    ? texts.size
    : Buffer.byteLength(JSON.stringify(Object.values({ parameters: '{}', ...texts })));

const [quote, backslash, comma] = Buffer.from('"\\,');
const opening = new Set(Buffer.from('[{'));
const closing = new Set(Buffer.from(']}'));
/** How much deeper each byte leads. A set of bytes takes three times as long. */
const levels = Int8Array.from(
  { length: 256 },
  (_, byte) => Number(opening.has(byte)) - Number(closing.has(byte)),
);
/** 1 for each byte that counts, or begins a string. */
const counts = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number(byte === quote || byte === comma || levels[byte] !== 0),
);

/**
 * Counts the values of JSON text, and says which limit it exceeds. To be called before parsing, because the parser
 * takes a third of a second for a megabyte of keys or brackets; this reads each byte once. Malformed JSON may be
 * refused for its size or depth instead.
 */
export function measureTree(
  bytes: Uint8Array,
  { maxDepth, maxValues }: TreeLimits,
): { values: number; excess?: string } {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    // Most bytes outside of strings are those of long numbers or blanks: a loop of its own takes a fifth of the time.
    while (at < bytes.length && counts[bytes[at] as number] === 0) at++;
    if (at === bytes.length) break;
    const byte = bytes[at] as number;
    if (byte === quote) at = endOfString(bytes, at + 1);
    const level = levels[byte] as number;
    depth += level;
    if (level > 0 || byte === comma) values++;
    if (depth > maxDepth) return { values, excess: `nests deeper than ${maxDepth} levels` };
    if (values > maxValues) return { values, excess: `has more than ${maxValues} values` };
  }
  return { values };
}

/** The index of the closing quote of the string whose content begins at `start`. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}

/** Whether every string and key is well-formed. Only escapes can give a lone surrogate: the decoder refuses others. */
function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, child]) => key.isWellFormed() && isWellFormed(child));
}
