import type { RequestHandler, Response } from 'express';
import { type Failure, failureKinds } from '../../shared/failures.js';
import { prefersHtml } from '../http/accept.js';
import { areFailuresSentBy, requestIdOf, sendFailuresBy, setRetryAfter } from '../http/problem.js';
import { type Blog, inEnglish, layOutBlogPage, noIndex } from './blog-layout.js';
import { layOut, policyOf } from './page-layout.js';
import { pageHeaders } from './page-response.js';
import { escapeHtml } from './rendering/markdown.js';

const readMethods: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Answers failures below `/blogs` with a page, if `Accept` asks for one. Must come before anything can fail. */
export function failuresAsPages(blog: Blog): RequestHandler {
  return (request, response, next) => {
    const isPage = /^\/blogs(\/|$)/.test(request.path) && readMethods.has(request.method);
    if (isPage && prefersHtml(request))
      sendFailuresBy(response, (to, failure) => sendFailurePage(to, failure, blog));
    next();
  };
}

/** Answers an unknown address with a page if `Accept` asks for HTML; the clients of other APIs get their own errors. */
export const notFoundAsPage: RequestHandler = (request, response, next) => {
  if (readMethods.has(request.method) && prefersHtml(request) && !areFailuresSentBy(response))
    sendFailuresBy(response, sendNotFoundPage);
  next();
};

function sendNotFoundPage(response: Response, failure: Failure): void {
  const main = failureText(failure, requestIdOf(response));
  const header = '<a href="/">Quillgate</a>';
  const page = { title: 'Not found', language: 'en', head: [noIndex], header, main };
  sendHtml(response, failure, layOut(page));
}

function sendFailurePage(response: Response, failure: Failure, blog: Blog): void {
  const { title } = failureKinds[failure.code];
  const main = `<div${inEnglish(blog)}>\n${failureText(failure, requestIdOf(response))}</div>\n`;
  sendHtml(response, failure, layOutBlogPage(blog, { title, head: [noIndex], main }));
}

function sendHtml(response: Response, failure: Failure, html: string): void {
  setRetryAfter(response, failure);
  response.status(failure.status).set({ ...pageHeaders(policyOf(['none'])), Vary: 'Accept' });
  response.send(html);
}

/** The page repeats nothing of the request, as the problem does not. */
function failureText({ code, status, facts }: Failure, requestId: string): string {
  const { title, detail } = failureKinds[code];
  const errors = facts.errors ?? [];
  const items = errors.map(
    ({ pointer, detail }) => `<li><code>${escapeHtml(pointer)}</code> ${escapeHtml(detail)}</li>\n`,
  );
  return `<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(facts.detail ?? detail)}</p>
${items.length === 0 ? '' : `<ul>\n${items.join('')}</ul>\n`}<p class="about">${status} · Request ${escapeHtml(requestId)}</p>
`;
}
