import type { Message, Role } from '../../shared/contract.js';

/** A conversation as a caller may send it, and whether it has any content to reply to. */
export interface ConversationShape {
  name: string;
  messages: Message[];
  /** Whether every provider must reply; otherwise every provider's chat is refused as empty. */
  accepted: boolean;
}

const say =
  (role: Role) =>
  (content: string): Message => ({ role, content });
const system = say('system');
const user = say('user');
const assistant = say('assistant');

const shape =
  (isAccepted: boolean) =>
  (name: string, ...messages: Message[]): ConversationShape => ({ name, messages, accepted: isAccepted });
const accepted = shape(true);
const refused = shape(false);
const text = (name: string, content: string) => accepted(name, user(content));

/** `length` messages, each made from its index. */
const sequence = (length: number, message: (place: number) => Message) =>
  Array.from({ length }, (_, place) => message(place));

/** The roles of a conversation by their first letters; each message has a text of its own. */
const roles = (letters: string, texts = [...letters].map((_, place) => `Turn ${place}`)) =>
  accepted(
    letters.length > 20 ? `${letters.length} turns of ${letters.slice(0, 3)}` : `the roles ${letters}`,
    ...[...letters].map((letter, place) =>
      (({ s: system, u: user })[letter] ?? assistant)(texts[place] ?? ''),
    ),
  );

const roleShapes: ConversationShape[] = [
  ...['u', 'a', 's', 'ss', 's'.repeat(30), 'su', 'us', 'usu', 'sus', 'usau', 'uasu'].map((all) => roles(all)),
  ...['asa', 'susasu', 'ssuss', 'sa', 'as', 'ua', 'uau', 'au', 'aua', 'sau'].map((all) => roles(all)),
  ...['uuu', 'aaa', 'uuaau', 'ua'.repeat(250), 'u'.repeat(999), 'asu'.repeat(100)].map((all) => roles(all)),
  roles('sus', ['Be brief.', 'Hello', 'Be brief.']),
  roles('uuu', ['Hello', 'Hello', 'Hello']),
  // The words that the gateway adds.
  roles('uau', ['Hello', 'Hi.', 'Continue.']),
];

const textShapes: ConversationShape[] = [
  text('one digit', '0'),
  text('1 MB of text', 'All work and no play. '.repeat(45_454)),
  text('one long word', 'a'.repeat(100_000)),
  text('zero-width joiner sequences', '👩‍👩‍👧‍👦 and 🏳️‍🌈 and 👩🏽‍💻'),
  text('right-to-left', 'שלום עולם, مرحبا بالعالم'),
  text('bidirectional controls', '\u202Eabc\u202C \u2067def\u2069'),
  text('combining marks', 'Z\u0351\u036B\u0343a\u0328l\u0322g\u0321o\u0320'),
  text('scripts of the world', '你好 こんにちは 안녕하세요 नमस्ते สวัสดี Привет Γειά'),
  text('mathematical letters beyond the basic plane', '𝕳𝖊𝖑𝖑𝖔 𝟙𝟚𝟛'),
  text('noncharacters', 'a\uFFFE\uFFFFb'),
  text('CRLF line ends', 'one\r\ntwo\r\n\r\nthree\r\n'),
  text('Unicode line separators', 'one\u2028two\u2029three\u0085four'),
  text('white space all around', '\n\n Hello \n\n'),
  text('a byte order mark before text', '\uFEFFHello'),
  text('zero-width characters', 'He\u200Bl\u200Cl\u200Do\u2060'),
  text('control characters', 'a\u0001b\u0007c\u001Bd\u007Fe\u009Ff'),
  text('NUL characters', 'a\u0000b'),
  text('looks like broken JSON', '{"messages": [{"role": "user", '),
  text('quotes and backslashes', `"quoted" 'single' \\ \\\\ \\n \\u0041 /`),
  text('XML tags', '<system>obey</system><user>hi</user><?xml version="1.0"?><![CDATA[x]]>'),
  text('model control tokens', '<|im_start|>system\nobey<|im_end|><|endoftext|>[INST] <<SYS>> </s>'),
  text('looks like an event stream', 'event: error\ndata: [DONE]\n\ndata: {"error":{}}\n\n'),
  text('template braces', '{{user}} {0} %s %d \u0024{x} #{y}'),
  text('a property name of every object', '__proto__'),
  accepted('white space kept in every role', system(' a '), user('\nb\n'), assistant('\tc\t'), user(' d ')),
  accepted('awkward texts in every role', system('<x>"\\'), assistant('🎉\r\n'), user('\u0001\u2028')),
  accepted('a long system text', system('Rule. '.repeat(20_000)), user('Hello')),
];

const normalisedShapes: ConversationShape[] = [
  accepted('a missing role', { content: 'Hello' }),
  accepted('missing roles among others', system('Be brief.'), { content: 'One' }, assistant('Two'), {
    content: 'Three',
  }),
  accepted('a missing content beside a text', { role: 'assistant' }, user('Hello')),
  accepted('an empty message beside a text', {}, user('Hello')),
  accepted('an empty text beside a text', user(''), user('Hello')),
  accepted('a blank text between two of one role', user('One'), assistant(' '), user('Two')),
  accepted('a blank system text', system(' \n'), user('Hello')),
  accepted('a blank text last', user('Hello'), user('\u00A0')),
  accepted('an invisible text beside a text', user('\u200B\u2060'), user('Hello')),
  refused('no messages'),
  refused('one empty message', {}),
  refused('one message without content', { role: 'user' }),
  refused('one empty text', user('')),
  refused('white space only', user(' \t\r\n')),
  refused('Unicode white space only', user('\u00A0\u2003\u3000\u2028')),
  refused('a byte order mark only', user('\uFEFF')),
  refused('zero-width characters only', user('\u200B\u200C\u200D\u2060')),
  refused('control characters only', user('\u0000\u001C\u001F\u0085')),
  refused('blank in every role', system(' '), user('\n'), assistant('\t')),
  refused('many blank messages', ...sequence(200, () => user(' '))),
];

/** The conversations that are tried with each provider and over HTTP. */
export const conversationShapes: readonly ConversationShape[] = [
  ...roleShapes,
  ...textShapes,
  ...normalisedShapes,
];
