import type { RequestHandler, Response } from 'express';
import { type Failure, failureKinds } from '../../shared/failures.js';
import { prefersHtml } from '../http/accept.js';
import { requestIdOf, sendFailuresBy, setRetryAfter } from '../http/problem.js';
import { type Blog, inEnglish, layOutBlogPage, noIndex } from './blog-layout.js';
import { policyOf } from './page-layout.js';
import { pageHeaders } from './page-response.js';
import { escapeHtml } from './rendering/markdown.js';

const readMethods: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Has what fails below `/blogs` answered with a page, for whoever asks for one. To be used before anything can fail. */
export function failuresAsPages(blog: Blog): RequestHandler {
  return (request, response, next) => {
    const isPage = /^\/blogs(\/|$)/.test(request.path) && readMethods.has(request.method);
    if (isPage && prefersHtml(request))
      sendFailuresBy(response, (to, failure) => sendFailurePage(to, failure, blog));
    next();
  };
}

function sendFailurePage(response: Response, failure: Failure, blog: Blog): void {
  setRetryAfter(response, failure);
  response.status(failure.status).set({ ...pageHeaders(policyOf(['none'])), Vary: 'Accept' });
  response.send(failurePage(blog, failure, requestIdOf(response)));
}

/** Like the problem, it repeats nothing of the request. */
function failurePage(blog: Blog, { code, status, facts }: Failure, requestId: string): string {
  const { title, detail } = failureKinds[code];
  const errors = facts.errors ?? [];
  const items = errors.map(
    ({ pointer, detail }) => `<li><code>${escapeHtml(pointer)}</code> ${escapeHtml(detail)}</li>\n`,
  );
  return layOutBlogPage(blog, {
    title,
    head: [noIndex],
    main: `<div${inEnglish(blog)}>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(facts.detail ?? detail)}</p>
${items.length === 0 ? '' : `<ul>\n${items.join('')}</ul>\n`}<p class="about">${status} · Request ${escapeHtml(requestId)}</p>
</div>
`,
  });
}
