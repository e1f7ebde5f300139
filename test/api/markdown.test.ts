import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMarkdownRenderer, escapeHtml, excerptOf } from '../../api/markdown.js';

const render = createMarkdownRenderer();

const harmless =
  /^(?:a|b|blockquote|br|code|dd|del|details|div|dl|dt|em|h[1-6]|hr|i|img|ins|li|ol|p|pre|s|small|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|ul)$/;
const attribute = /([^\s=]+)(?:="([^"]*)")?/g;

/** What a browser would find in the text that could run, load or lead anywhere it should not. */
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
  '</div></article></main></body></html><script>alert(1)</script>',
];

describe('createMarkdownRenderer', () => {
  it.each(attacks)('leaves nothing that runs of %j', (markdown) => {
    expect(dangersIn(render(markdown))).toEqual([]);
    expect(dangersIn(render(`<div>\n${markdown}\n</div>`))).toEqual([]);
    expect(
      dangersIn(render(`> - a ${markdown} b\n\nc ${markdown}\n\n| d | e |\n|-|-|\n| ${markdown} | f |`)),
    ).toEqual([]);
  });

  it('leaves nothing that runs of any mixture of them', () => {
    const parts = ['"', "'", '<', '>', '/', '`', '\n', '\0', ' ', '](', '-->', '&', ';', ...attacks];
    const mixture = fc.array(fc.constantFrom(...parts), { maxLength: 8 }).map((chosen) => chosen.join(''));
    fc.assert(
      fc.property(mixture, (markdown) => dangersIn(render(markdown)).length === 0),
      { numRuns: 1000 },
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
  ])('renders %j', (markdown, html) => {
    expect(render(markdown)).toBe(html);
  });

  it('tells search engines and other windows nothing about links, written or bare', () => {
    const link = '<a href="https://a.example/b?c&amp;d" rel="nofollow noopener">';
    expect(render('[a](https://a.example/b?c&d "")')).toContain(link);
    expect(render('see https://a.example/b?c&d')).toContain(link);
    expect(render('<a href="https://a.example/b?c&d" rel="opener" target="_blank">a</a>')).toContain(link);
    expect(render('mail me@a.example')).toContain('href="mailto:me@a.example"');
    expect(render('[a](/blogs/b)')).toContain('href="/blogs/b"');
  });

  it('keeps the alignment of table cells without a style attribute', () => {
    const html = render('| a | b | c |\n|:-|-:|-|\n| d | e | f |');
    expect(html).toContain('<th align="left">a</th>\n<th align="right">b</th>\n<th>c</th>');
    expect(html).not.toContain('style');
  });
});

const longest = 262_144;
const filledWith = (unit: string): string => unit.repeat(longest / unit.length);

describe('the cost of a hostile text', () => {
  it.each([
    [
      'a definition that every third character uses',
      `[a]: /${'x'.repeat(131_000)}\n\n${'[a]'.repeat(43_000)}`,
    ],
    ['an image that every fourth character uses', `[a]: /${'x'.repeat(131_000)}\n\n${'![a]'.repeat(32_000)}`],
    ['a title that every third character uses', `[a]: / "${'x'.repeat(131_000)}"\n\n${'[a]'.repeat(43_000)}`],
    ['lines that belong to a deep quotation', `${'>'.repeat(90)}a\n${'b\n'.repeat(130_000)}`],
    ['lines that belong to a deep list', `${'- '.repeat(45)}a\n${'b\n'.repeat(130_000)}`],
    ['quotations deeper than are kept', `${'>'.repeat(200)}a`],
    ['elements in elements', filledWith('<b>')],
    ['elements that no end tag closes', `${'<b>'.repeat(43_000)}${'</i>'.repeat(32_000)}`],
  ])('is bounded by showing it as it is: %s', (_name, markdown) => {
    const startedAt = performance.now();
    expect(render(markdown) === `<pre>${escapeHtml(markdown)}</pre>`).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(5000);
  });

  // Each takes up to about a second; what grows with the square of the length would take minutes.
  it.each([
    '> ',
    '- ',
    '* a\n',
    '[',
    '![',
    '![[[[',
    '[a](',
    '[a]: <\n',
    '*_',
    '*_*_a',
    '**a *b ',
    '`a``',
    '|',
    'a|b\n-|-\n',
    '<',
    '<a ',
    '<a b="',
    '<!--',
    '<?',
    '<![CDATA[',
    '</div>',
    '<p>\n\n',
    '<iframe>',
    '<svg>',
    '<table><tr><td>',
    '&',
    '&#1',
    '\\',
    'http://',
    'a@a.com ',
    'www.a.com/(',
    '<http:',
    '[http://a.com',
    '😀',
    '\u0001',
  ])('is bounded for 256 KiB of %j', (unit) => {
    const startedAt = performance.now();
    render(filledWith(unit));
    expect(performance.now() - startedAt).toBeLessThan(5000);
  });

  it('is no reason to change an ordinary text with deep lists or many lines', () => {
    const deep = Array.from({ length: 20 }, (_, level) => `${'  '.repeat(level)}- level ${level}`).join('\n');
    expect(render(deep)).toContain('<li>level 19</li>');
    expect(render(filledWith('> a line of a quotation\n'))).toMatch(/^<blockquote>/);
  });
});

describe('excerptOf', () => {
  it.each([
    ['<p>Hello <em>you</em>\n&amp; all &lt;b&gt; &quot;</p>', 'Hello you & all <b> "'],
    ['<p>&amp;lt;</p>', '&lt;'],
    [`<p>${'word '.repeat(30)}</p>`, `${'word '.repeat(16).trim()}…`],
    [`<p>${'😀'.repeat(100)}</p>`, `${'😀'.repeat(80)}…`],
    [`<p>${'a'.repeat(80)}</p>`, 'a'.repeat(80)],
    ['<p><img src="https://a.example/b.png" alt="a" /></p>', ''],
    ['', ''],
  ])('of %j is %j', (html, excerpt) => {
    expect(excerptOf(html)).toBe(excerpt);
  });
});
