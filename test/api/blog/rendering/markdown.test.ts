import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { excerptOf, rendererVersion } from '../../../../api/blog/rendering/markdown.js';
import { unhurriedRenderer } from '../../../support/renderers.js';

const patient = unhurriedRenderer();
afterAll(() => patient.close());

async function render(markdown: string): Promise<string> {
  const rendering = await patient.render(markdown);
  return rendering.kind === 'rendered' ? rendering.html : rendering.kind;
}

const harmless =
  /^(?:a|b|blockquote|br|code|dd|del|details|div|dl|dt|em|h[1-6]|hr|i|img|ins|li|ol|p|pre|s|small|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|ul)$/;
const attribute = /([^\s=]+)(?:="([^"]*)")?/g;

/** All that a browser would run, load or follow in the text, and should not. */
function dangersIn(html: string): string[] {
  // Every < that is left begins a tag: the others are escaped, as every > in an attribute is.
  return html
    .split('<')
    .slice(1)
    .flatMap((rest) => {
      const [, name = '', attributes = ''] = /^\/?([a-z0-9]+)((?:\s[^>]*)?)>/.exec(rest) ?? [];
      if (!harmless.test(name)) return [`<${rest.slice(0, 20)}`];
      return [...attributes.replace(/\/$/, '').matchAll(attribute)].flatMap(
        ([found, key = '', value = '']) => (isHarmless(key, value) ? [] : [found]),
      );
    });
}

function isHarmless(name: string, value: string): boolean {
  if (/^(?:alt|align|class|colspan|dir|height|lang|open|rel|rowspan|start|title|width)$/.test(name))
    return true;
  // Of a footnote, and of this text alone.
  if (name === 'id') return /^fn(?:ref)?-[0-9a-f]{8}-\d+(?::\d+)?$/.test(value);
  // Entities could hide a scheme; these four cannot.
  if (/&(?!(?:amp|lt|gt|quot);)/.test(value)) return false;
  const address = value.replaceAll('&amp;', '&');
  if (!/^(?:href|src)$/.test(name) || !URL.canParse(address, 'https://blog.example/')) return false;
  return ['https:', 'http:', ...(name === 'href' ? ['mailto:'] : [])].includes(
    new URL(address, 'https://blog.example/').protocol,
  );
}

const attacks = [
  '<script>alert(1)</script>',
  '<ScRiPt src="https://evil.example/x.js"></sCrIpT>',
  '<scr<script>ipt>alert(1)</scr</script>ipt>',
  '<script\n>alert(1)</script\n>',
  '<script>alert(1)',
  '<img src=x onerror=alert(1)>',
  '<img src="x" OnErRoR="alert(1)">',
  '<img/src="x"/onerror=alert(1)>',
  '<img src=x onerror=alert(1)//',
  '<img src=`x`onerror=alert(1)>',
  '<p onclick="alert(1)" onmouseover=alert(1)>a</p>',
  '<details open ontoggle=alert(1)>',
  '[a](javascript:alert(1))',
  '[a](JaVaScRiPt:alert(1))',
  '[a](&#106;avascript:alert(1))',
  '[a](javascript&colon;alert(1))',
  '[a](java&Tab;script:alert(1))',
  '[a](<java\tscript:alert(1)>)',
  '[a](< javascript:alert(1)>)',
  '[a](\u0001javascript:alert(1))',
  '[a](vbscript:msgbox(1))',
  '[a](data:text/html,<script>alert(1)</script>)',
  '[a](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)',
  '[a](file:///etc/passwd)',
  '[a][b]\n\n[b]: javascript:alert(1)',
  '[b]\n\n[b]: <JAVASCRIPT:alert(1)> "title"',
  '<javascript:alert(1)>',
  '<data:text/html,x>',
  '![a](javascript:alert(1))',
  '![a](data:image/svg+xml,<svg onload=alert(1)>)',
  '![a](data:image/png;base64,AAAA)',
  '![a](mailto:a@b.example)',
  '![a" onerror="alert(1)](x)',
  '[a](x "b\' onclick=alert(1) \\"c")',
  '[a](https://x.example/"onmouseover="alert(1))',
  '<a href="javascript:alert(1)">a</a>',
  '<a href=" javascript:alert(1)">a</a>',
  '<a href="java\nscript:alert(1)">a</a>',
  '<a href="java&#x0A;script:alert(1)">a</a>',
  '<a href="&#x6A&#x61&#x76&#x61&#x73&#x63&#x72&#x69&#x70&#x74&#x3A;alert(1)">a</a>',
  '<a href="javascript&#58;alert(1)">a</a>',
  '<a href="data:text/html,x">a</a>',
  '<a href="//evil.example" xlink:href="javascript:alert(1)">a</a>',
  '<svg onload=alert(1)>',
  '<svg><script>alert(1)</script></svg>',
  '<svg><a xlink:href="javascript:alert(1)"><text>a</text></a></svg>',
  '<svg><animate attributeName=href values=javascript:alert(1) />',
  '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
  '<iframe src="javascript:alert(1)"></iframe>',
  '<iframe srcdoc="<script>alert(1)</script>">',
  '<iframe><img src=x onerror=alert(1)></iframe>',
  '<style>body { background: url(javascript:alert(1)) }</style>',
  '<style><img src=x onerror=alert(1)></style>',
  '<p style="background: url(https://evil.example)">a</p>',
  '<link rel="stylesheet" href="https://evil.example/x.css">',
  '<meta http-equiv="refresh" content="0;url=https://evil.example">',
  '<base href="https://evil.example/">',
  '<form action="https://evil.example"><input name=password><button formaction="javascript:alert(1)">a</button></form>',
  '<object data="x.swf"></object><embed src="x.swf"><applet code=x></applet>',
  '<!-- <script>alert(1)</script> -->',
  '<!--><script>alert(1)</script>-->',
  '<!--[if IE]><script>alert(1)</script><![endif]-->',
  '<![CDATA[<script>alert(1)</script>]]>',
  '<?php echo 1 ?><!DOCTYPE html>',
  '<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>',
  '<textarea><img src=x onerror=alert(1)></textarea>',
  '<title></title><script>alert(1)</script>',
  '<xmp><script>alert(1)</script></xmp><plaintext><script>alert(1)</script>',
  '<template><script>alert(1)</script></template>',
  '<video src=x onerror=alert(1)><source onerror=alert(1)></video><audio src=x>',
  '<a href="x" target="_blank" rel="opener" id="login" name="login">a</a>',
  '<img src="x" srcset="javascript:alert(1) 1x" usemap="#a">',
  '`<script>alert(1)</script>`',
  '```html"onclick=alert(1)\n<script>alert(1)</script>\n```',
  '&lt;script&gt;alert(1)&lt;/script&gt;',
  '<div><b><i>unclosed <a href="https://a.example"',
  'a[^1] b[^1]\n\n[^1]: <script>alert(1)</script> [c](javascript:alert(1))\n\n    <img src=x onerror=alert(1)>',
  'a[^"onclick=alert(1)] b[^<script>]\n\n[^"onclick=alert(1)]: c\n[^<script>]: d',
  'a[^__proto__] b[^constructor]\n\n[^__proto__]: c\n[^constructor]: d',
  '![a[^1]](x)\n[b[^1]](y)\n\n[^1]: c [^1] ![d](javascript:alert(1))',
  '^[a <script>alert(1)</script>](javascript:alert(1))',
  '<li id="login">a</li><a id="fn-1" name="fn1" href="#x">b</a><sup id="fn-00000000-1">c</sup>',
  '- [x] <script>alert(1)</script>\n- [ ] [a](javascript:alert(1))\n- [x](javascript:alert(1))',
  '<input type="checkbox" checked onclick="alert(1)" autofocus onfocus=alert(1)>',
  '</div></article></main></body></html><script>alert(1)</script>',
];

describe('a text', () => {
  it.each(attacks)('is %j -> nothing that runs is left', async (markdown) => {
    expect(dangersIn(await render(markdown))).toEqual([]);
    expect(dangersIn(await render(`<div>\n${markdown}\n</div>`))).toEqual([]);
    const everywhere = `> - a ${markdown} b\n\nc ${markdown}\n\n| d | e |\n|-|-|\n| ${markdown} | f |`;
    expect(dangersIn(await render(everywhere))).toEqual([]);
  });

  it('is any mixture of those -> nothing that runs is left', async () => {
    const parts = ['"', "'", '<', '>', '/', '`', '\n', '\0', ' ', '](', '-->', '&', ';', ...attacks];
    const mixture = fc.array(fc.constantFrom(...parts), { maxLength: 8 }).map((chosen) => chosen.join(''));
    await fc.assert(
      fc.asyncProperty(mixture, async (markdown) => dangersIn(await render(markdown)).length === 0),
      { numRuns: 300 },
    );
  });

  it.each([
    ['# a', '<h1>a</h1>\n'],
    ['**a** *b* ~~c~~', '<p><strong>a</strong> <em>b</em> <s>c</s></p>\n'],
    ['```js\na < b\n```', '<pre><code class="language-js">a &lt; b\n</code></pre>\n'],
    ['3. a', '<ol start="3">\n<li>a</li>\n</ol>\n'],
    ['![a](https://b.example/c.png "d")', '<p><img src="https://b.example/c.png" alt="a" title="d" /></p>\n'],
    ['a<br>b <sub>c</sub>', '<p>a<br />b <sub>c</sub></p>\n'],
    ['a & b &copy; 😀 漢字', '<p>a &amp; b © 😀 漢字</p>\n'],
    ['<script>a</script>b', 'b'],
    ['- [ ] a\n- [x] *b*\n- [X] c', '<ul>\n<li>☐ a</li>\n<li>☑ <em>b</em></li>\n<li>☑ c</li>\n</ul>\n'],
    ['1. [x] a\n\n2. [ ] b', '<ol>\n<li>\n<p>☑ a</p>\n</li>\n<li>\n<p>☐ b</p>\n</li>\n</ol>\n'],
    ['[x] a', '<p>[x] a</p>\n'],
    [
      '- [x]a\n- \\[ ] b\n- `[ ] c`',
      '<ul>\n<li>[x]a</li>\n<li>[ ] b</li>\n<li><code>[ ] c</code></li>\n</ul>\n',
    ],
    ['', ''],
  ])('is %j -> %j', async (markdown, html) => {
    expect(await render(markdown)).toBe(html);
  });

  it('has footnotes -> links there and back that no other post has', async () => {
    const markdown = 'a[^n] b[^n] c[^other]\n\n[^n]: *d*\n\n    e\n[^other]: f\n[^unused]: g';
    const mark = createHash('sha256').update(markdown).digest('hex').slice(0, 8);
    const link = (text: string, to: string, id = '') =>
      `<a href="#${to}"${id && ` id="${id}"`} rel="nofollow noopener">${text}</a>`;
    const [first, second] = [`fn-${mark}-1`, `fn-${mark}-2`];
    const back = (id: string) => link('↩\uFE0E', id.replace('fn', 'fnref'));
    expect(await render(markdown)).toBe(
      [
        `<p>a<sup>${link('[1]', first, `fnref-${mark}-1`)}</sup>` +
          ` b<sup>${link('[1:1]', first, `fnref-${mark}-1:1`)}</sup>` +
          ` c<sup>${link('[2]', second, `fnref-${mark}-2`)}</sup></p>`,
        '<hr />',
        '<ol>',
        `<li id="${first}"><p><em>d</em></p>`,
        `<p>e ${back(first)} ${back(`${first}:1`)}</p>`,
        '</li>',
        `<li id="${second}"><p>f ${back(second)}</p>`,
        '</li>',
        '</ol>',
        '',
      ].join('\n'),
    );
    expect(await render('a[^n] ^[b]')).toBe('<p>a[^n] ^[b]</p>\n');
  });

  it('has links, written or bare -> `rel` for search engines and other windows', async () => {
    const link = '<a href="https://a.example/b?c&amp;d" rel="nofollow noopener">';
    expect(await render('[a](https://a.example/b?c&d "")')).toContain(link);
    expect(await render('see https://a.example/b?c&d')).toContain(link);
    expect(await render('<a href="https://a.example/b?c&d" rel="opener" target="_blank">a</a>')).toContain(
      link,
    );
    expect(await render('mail me@a.example')).toContain('href="mailto:me@a.example"');
    expect(await render('[a](/blogs/b)')).toContain('href="/blogs/b"');
  });

  it('has aligned table cells -> they are, without a style attribute', async () => {
    const html = await render('| a | b | c |\n|:-|-:|-|\n| d | e | f |');
    expect(html).toContain('<th align="left">a</th>\n<th align="right">b</th>\n<th>c</th>');
    expect(html).not.toContain('style');
    const written = '<table><tr><td style=" text-align : center ; ">a</td></tr></table>';
    expect(await render(written)).toContain('<td align="center">a</td>');
  });

  it('is an ordinary one, however long or deep, or one of many -> rendered', async () => {
    const deep = Array.from({ length: 20 }, (_, level) => `${'  '.repeat(level)}- level ${level}`);
    expect(await render(deep.join('\n'))).toContain('<li>level 19</li>');
    expect(await render(filledWith('> a line of a quotation\n'))).toMatch(/^<blockquote>/);
    const numbers = Array.from({ length: 20 }, (_, number) => `<p>${number}</p>\n`);
    expect(await Promise.all(numbers.map((_, number) => render(String(number))))).toEqual(numbers);
  });
});

describe('rendererVersion', () => {
  it('the same text becomes other HTML, also after an upgrade of a library -> it has to be raised', async () => {
    const sample = [
      '# A *b* `c` ~~d~~\n\n> - e\n> 1. f\n\n```js\ng\n```\n\n| h | i |\n|:-|-:|\n| j | k |',
      '[l](https://m.example "n") ![o](https://p.example/q.png) https://r.example s@t.example <u@v.example>',
      '<details><summary>w</summary>\n\nx &amp; y\n\n</details>\n<script>z</script><p style="color: red">&copy;',
    ].join('\n\n');
    const footnotes = '- [x] a[^1]\n- [ ] b\n\n[^1]: c';
    const digest = createHash('sha256')
      .update((await render(sample)) + (await render(footnotes)))
      .digest('hex');
    expect({ rendererVersion, digest: digest.slice(0, 16) }).toEqual({
      rendererVersion: 2,
      digest: '6b9eaa723c09a492',
    });
  });
});

const longest = 262_144;
const filledWith = (unit: string): string => unit.repeat(longest / unit.length);

describe('the thread that renders', () => {
  let started: Worker[];
  const note = (worker: Worker) => started.push(worker);
  beforeEach(() => {
    started = [];
    process.on('worker', note);
  });
  afterEach(() => void process.off('worker', note));

  it('several texts -> is started with the first one, used for all, and ends with the renderer', async () => {
    const renderer = unhurriedRenderer();
    expect(started).toHaveLength(0);
    for (const markdown of ['a', 'b', 'c']) await renderer.render(markdown);
    expect(started).toHaveLength(1);
    await renderer.close();
    expect(started[0]?.threadId).toBe(-1);
    expect(await renderer.render('d')).toEqual({ kind: 'busy' });
    expect(started).toHaveLength(1);
  });

  it('excerpts are asked for -> are made by the same thread, while this one goes on', async () => {
    const renderer = unhurriedRenderer();
    await renderer.render('a');
    const excerpt = renderer.excerpt({ markdown: '![['.repeat(333), title: null });
    expect(await Promise.race([excerpt, turn('this one goes on')])).toBe('this one goes on');
    expect(await excerpt).toBe(`${'![['.repeat(80)}…`);
    expect(started).toHaveLength(1);
    await renderer.close();
    expect(await renderer.excerpt({ markdown: 'b', title: null })).toBeUndefined();
  });

  it('more excerpts than may wait for it -> the first ones, behind a text that came after them', async () => {
    const renderer = unhurriedRenderer({ maxWaiting: 3 });
    const ended: string[] = [];
    const excerpts = ['a', 'b', 'c', 'd'].map(async (markdown) => {
      const excerpt = await renderer.excerpt({ markdown, title: null });
      ended.push(markdown);
      return excerpt;
    });
    expect(await renderer.render('e')).toMatchObject({ kind: 'rendered' });
    ended.push('e');
    expect(await Promise.all(excerpts)).toEqual(['a', 'b', 'c', undefined]);
    expect(ended).toEqual(['d', 'a', 'e', 'b', 'c']);
    await renderer.close();
  });

  it('nothing to do for a while -> ends, and another one is started for the next text', async () => {
    const renderer = unhurriedRenderer({ idleMs: 0 });
    await renderer.render('a');
    await once(started[0] as Worker, 'exit');
    expect(await renderer.render('b')).toMatchObject({ kind: 'rendered' });
    expect(started).toHaveLength(2);
    await renderer.close();
  });

  it('more texts than may wait for it -> busy', async () => {
    const renderer = unhurriedRenderer({ maxWaiting: 2 });
    const renderings = await Promise.all(['a', 'b', 'c'].map((text) => renderer.render(text)));
    expect(renderings.map(({ kind }) => kind)).toEqual(['rendered', 'rendered', 'busy']);
    expect(await renderer.render('d')).toMatchObject({ kind: 'rendered' });
    await renderer.close();
  });

  it('a text that has waited for longer than it may when its turn comes -> busy', async () => {
    let now = 0;
    const renderer = unhurriedRenderer({ maxWaitMs: 2000, now: () => now });
    const begun = once(process, 'worker');
    const renderings = ['a', 'b'].map((text) => renderer.render(text));
    await begun;
    now = 2001;
    expect((await Promise.all(renderings)).map(({ kind }) => kind)).toEqual(['rendered', 'busy']);
    expect(await renderer.render('c')).toMatchObject({ kind: 'rendered' });
    await renderer.close();
  });

  it('a text that gets no processor time until its timeout -> refused', async () => {
    const renderer = unhurriedRenderer({ timeoutMs: 0 });
    expect(await renderer.render(filledWith('//a.com/'))).toEqual({ kind: 'refused' });
    await renderer.close();
  });

  it('a renderer that is closed -> nobody is left waiting', async () => {
    const renderer = unhurriedRenderer();
    const renderings = [filledWith('//a.com/'), 'b'].map((text) => renderer.render(text));
    await renderer.close();
    expect(await Promise.all(renderings)).toEqual([{ kind: 'busy' }, { kind: 'busy' }]);
    expect(started.filter(({ threadId }) => threadId !== -1)).toEqual([]);
  });

  it('a failure -> is thrown for the text that it failed at alone', async () => {
    const renderer = unhurriedRenderer();
    const noText = 1 as unknown as string;
    const [failed, next] = await Promise.allSettled([renderer.render(noText), renderer.render('a')]);
    expect(failed).toMatchObject({ status: 'rejected', reason: expect.any(Error) });
    expect(next).toMatchObject({ status: 'fulfilled', value: { kind: 'rendered' } });
    await renderer.close();
  });
});

describe('excerptOf', () => {
  it.each([
    ['<p>Hello <em>you</em>\n&amp; all &lt;b&gt; &quot;</p>', 'Hello you & all <b> "'],
    ['<p>&amp;lt;</p>', '&lt;'],
    ['<pre>It&#39;s</pre>', "It's"],
    [`<p>a${' '.repeat(3985)}b<a title="cut"></p>`, 'a b'],
    [`<p>${'word '.repeat(30)}</p>`, `${'word '.repeat(16).trim()}…`],
    [`<p>${'😀'.repeat(100)}</p>`, `${'😀'.repeat(80)}…`],
    [`<p>${'a'.repeat(80)}</p>`, 'a'.repeat(80)],
    ['<p><img src="https://a.example/b.png" alt="a" /></p>', ''],
    ['', ''],
  ])('%j -> %j', (html, excerpt) => {
    expect(excerptOf(html)).toBe(excerpt);
  });
});
