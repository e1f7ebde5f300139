import { createHash } from 'node:crypto';
import { escapeHtml } from './rendering/markdown.js';

/** The look that all pages share: one style, no script, light and dark, narrow and wide. */

/** A page before it is laid out. All but `title` and `language` is HTML. */
export interface PageParts {
  title: string;
  /** BCP 47 tag of the language that the page is in. */
  language: string;
  head?: readonly string[];
  header: string;
  main: string;
  footer?: string;
}

/** A page as it is sent. */
export interface Page {
  html: string;
  csp: string;
}

const style = `
:root { color-scheme: light dark; --text: #1d1d1f; --soft: #5c5c63; --page: #fff; --raised: #f3f3f5; --link: #0b57d0; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e6ea; --soft: #a5a5ad; --page: #17171a; --raised: #242429; --link: #8ab4f8; }
}
body { margin: 0; background: var(--page); color: var(--text); font: 1.0625rem/1.65 system-ui, sans-serif; }
body > * { max-width: 42rem; margin: 0 auto; padding: 1.5rem 1.25rem; overflow-wrap: break-word; }
body > header, body > footer, .about { color: var(--soft); font-size: 0.9375rem; }
h1, h2, h3 { line-height: 1.25; }
a { color: var(--link); }
img { max-width: 100%; height: auto; }
pre, code { background: var(--raised); border-radius: 0.3rem; font-family: ui-monospace, monospace; font-size: 0.9em; }
code { padding: 0.1em 0.3em; }
pre { padding: 0.9rem; overflow-x: auto; white-space: pre-wrap; }
pre code { padding: 0; font-size: 1em; }
blockquote { margin-inline: 0; padding-inline-start: 1rem; border-inline-start: 0.2rem solid var(--soft); color: var(--soft); }
table { display: block; overflow-x: auto; border-collapse: collapse; }
th, td { padding: 0.35rem 0.7rem; border: 1px solid var(--soft); }
.tags { display: flex; flex-wrap: wrap; gap: 0.5rem; padding: 0; list-style: none; }
.tags li { padding: 0 0.6rem; border-radius: 1rem; background: var(--raised); }
.posts { padding: 0; list-style: none; }
.posts > li { padding: 0.5rem 0 1rem; border-block-end: 1px solid var(--raised); }
.posts h2 { margin: 0.75rem 0 0; font-size: 1.3rem; }
.posts p { margin: 0.4rem 0; }
form { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
form label { flex-basis: 100%; }
input, button { padding: 0.4rem 0.7rem; border: 1px solid var(--soft); border-radius: 0.4rem; background: var(--page); color: inherit; font: inherit; }
input { flex: 1; min-width: 0; }
button { background: var(--raised); cursor: pointer; }
.pages { display: flex; flex-wrap: wrap; gap: 1.5rem; padding-block: 1rem; }
.button { display: inline-block; padding: 0.4rem 1rem; border-radius: 0.4rem; background: var(--link); color: var(--page); text-decoration: none; }
.copy { user-select: all; }
dt { margin-top: 1rem; font-weight: 600; }
dd { margin-inline-start: 0; }
`;

const styleHash = createHash('sha256').update(style).digest('base64');

/** Lays a page out as a whole HTML document. */
export const layOut = ({
  title,
  language,
  head = [],
  header,
  main,
  footer,
}: PageParts): string => `<!doctype html>
<html lang="${escapeHtml(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${head.map((element) => `${element}\n`).join('')}<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body>
<header>${header}</header>
<main>
${main}</main>
${footer === undefined ? '' : `<footer>${footer}</footer>\n`}</body>
</html>
`;

const imageSources = new Map([
  ['https', ['https:']],
  ['none', []],
]);

/**
 * The policy of a page that loads nothing but its icon, and images from there: `https` (any host), `none`, or hosts.
 * Its forms, if it has any, go to `formAction`.
 */
export const policyOf = (images: readonly string[], { formAction = "'none'" } = {}): string =>
  [
    "default-src 'none'",
    `img-src ${["'self'", ...images.flatMap((source) => imageSources.get(source) ?? `https://${source}`)].join(' ')}`,
    `style-src 'sha256-${styleHash}'`,
    "base-uri 'none'",
    `form-action ${formAction}`,
    "frame-ancestors 'none'",
  ].join('; ');
