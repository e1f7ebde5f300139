import express, { Router } from 'express';
import type { Caller } from '../../api/access/caller.js';
import { blogOf } from '../../api/blog/blog-layout.js';
import { BlogsController, type BlogsDeps } from '../../api/blog/blogs.controller.js';
import { failuresAsPages } from '../../api/blog/failure-page.js';
import { createExcerpts } from '../../api/blog/rendering/excerpts.js';
import { RegisterRoutes } from '../../api/generated/routes.js';
import { jsonBody } from '../../api/http/json-body.js';
import { notFound, problemHandler } from '../../api/http/problem.js';
import { openDatabase } from '../../db/database/client.js';
import { PostStore } from '../../db/posts/post-store.js';
import type { Post, Problem } from '../../shared/contracts/contract.js';
import { createAuthentication } from './authentication.js';
import { openTestDatabase } from './database.js';
import { userNamed } from './identities.js';
import { createRecordingLog } from './recording-log.js';
import { unhurriedRenderer } from './renderers.js';
import { serve } from './serve.js';

/** The access tokens of a test's blog, and their owners. */
const callers: Record<string, Caller> = {
  writer: { ...userNamed('Wanda'), scopes: ['blogs:write', 'blogs:read'] },
  other: { ...userNamed('Otto'), scopes: ['blogs:write'] },
  reader: { ...userNamed('Rita'), scopes: ['blogs:read'] },
  revoked: {
    ...userNamed('Wanda'),
    scopes: ['blogs:write'],
    tokenId: '01a20ac9-0000-7000-8000-000000000000',
  },
};

/** A request to the blog. */
export interface BlogCall {
  method?: string;
  /** Relative to `/base/blogs`. */
  path?: string;
  /** `revoked` was revoked after it was loaded. */
  token?: 'writer' | 'other' | 'reader' | 'revoked' | 'unknown' | undefined;
  headers?: Record<string, string>;
  /** Sent as JSON; a string is sent as it is. */
  body?: unknown;
}

/** The answer; its body is typed as that of a success. */
export interface BlogAnswer {
  status: number;
  headers: Headers;
  text: string;
  post: Post;
  posts: Post[];
  problem: Problem;
}

/** The operations on posts over HTTP at `/base/blogs`, with their own database. */
export interface BlogApp {
  readonly url: string;
  readonly port: number;
  /** The log so far. */
  logs(): string;
  call(call: BlogCall): Promise<BlogAnswer>;
  close(): Promise<void>;
}

export async function startBlogApp({
  publicReads = true,
  databaseIsAway = false,
}: {
  publicReads?: boolean;
  databaseIsAway?: boolean;
} = {}): Promise<BlogApp> {
  const recording = createRecordingLog();
  const { database, stop } = await (databaseIsAway ? openNoDatabase() : openTestDatabase());
  const app = express().disable('x-powered-by').disable('etag');
  const renderer = unhurriedRenderer();
  const deps: BlogsDeps = {
    posts: new PostStore(database),
    blog: blogOf({ BLOG_TITLE: 'Blog', BLOG_BASE_URL: 'https://blog.example/base', BLOG_LANGUAGE: 'en' }),
    pages,
    excerpts: createExcerpts(renderer, 2_147_483_647),
  };
  app.locals.controllers = new Map().set(BlogsController, () => new BlogsController(deps));
  app.locals.jsonBody = jsonBody({ maxBytes: 2_097_152, maxDepth: 32, maxValues: 1_000_000 });
  const directory = { findToken: async (token: string) => callers[token] };
  app.locals.authentication = createAuthentication(recording.log, { directory, publicReads });
  const routes = Router();
  RegisterRoutes(routes);
  app.use((_request, response, next) => next(void response.set('X-Request-Id', 'the-id')));
  app.use('/base', failuresAsPages(deps.blog), routes, notFound);
  app.use(problemHandler(recording.log));
  const server = await serve(app);
  const url = `${server.url}/base/blogs`;
  return {
    url,
    port: server.port,
    logs: recording.text,
    call: (call) => send(url, call),
    close: async () => {
      await server.close();
      await renderer.close();
      await stop();
    },
  };
}

const pages: BlogsDeps['pages'] = {
  edition: 'abc',
  render: async ({ content }) => {
    if (content === 'unrenderable') throw new Error('cannot render');
    return { html: `<p>${content.length}</p>`, csp: "default-src 'none'", final: true };
  },
};

/** Nothing listens on port 1. */
function openNoDatabase() {
  const { log } = createRecordingLog();
  const database = openDatabase({ url: 'postgres://127.0.0.1:1/none', poolSize: 1, log });
  return { database, stop: () => database.close() };
}

async function send(url: string, { method = 'GET', path = '', token, headers, body }: BlogCall) {
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(token && { Authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const value = response.headers.get('content-type')?.includes('json') && text !== '' ? JSON.parse(text) : {};
  const { status, headers: sent } = response;
  return { status, headers: sent, text, post: value, posts: value, problem: value };
}
