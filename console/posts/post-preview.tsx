import { useEffect, useState } from 'preact/hooks';
import type { Preview } from '../../shared/contracts/contract.ts';
import { call } from '../api.ts';
import { ErrorNotice } from '../parts/field.tsx';

const typingMs = 300;

/** The text as the blog would show it, in a frame where nothing can run and that belongs to no origin. */
export function PostPreview({ content }: { content: string }) {
  const [html, setHtml] = useState('');
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const gone = new AbortController();
    const render = async () => {
      try {
        const options = { method: 'POST', json: { content }, signal: gone.signal } as const;
        const { body } = await call<Preview>('/admin/preview', options);
        setHtml(body.html);
        setError(undefined);
      } catch (failure) {
        if (!gone.signal.aborted) setError(failure);
      }
    };
    const timer = setTimeout(() => void render(), typingMs);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [content]);
  return (
    <section class="preview" aria-labelledby="preview">
      <h2 id="preview">Preview</h2>
      <ErrorNotice error={error} />
      <iframe title="The text as the blog would show it" sandbox="" srcdoc={documentOf(html)} />
      <p class="soft">Without the blog's style, and without images of other servers.</p>
    </section>
  );
}

/** The frame has the policy of this page, which allows no style in it. */
const documentOf = (html: string): string =>
  `<!doctype html><html lang=""><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>Preview</title><body dir="auto">${html}`;
