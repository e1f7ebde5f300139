import { describe, expect, it } from 'vitest';
import { findFaults, looks, takePicture, visit } from './support/browser.js';
import { findChromium } from './support/chromium.js';
import { admin, openView, useConsole } from './support/console.js';

describe.skipIf(findChromium() === undefined)('posts in the console', () => {
  const opened = useConsole({ workers: 0 });

  const open = async (view: string, look = looks[0]) => {
    const visited = await visit(opened.browser, look);
    await openView(visited.page, opened.deployment.url, view);
    return visited;
  };

  it.each(looks)('in the look %o -> are written, previewed, published, found and deleted', async (look) => {
    const { page, context, complaints } = await open('posts', look);
    await page.getByRole('link', { name: 'New post' }).click();
    await page.getByLabel('Title', { exact: true }).fill('Durable queues');
    await page.getByLabel('Tags').fill('news, queue');
    await page
      .getByLabel('Text, in Markdown')
      .fill('# Hello\n\nMy *first* post.\n\n<script>document.title="run"</script>\n');
    await page.frameLocator('iframe').getByRole('heading', { name: 'Hello' }).waitFor();
    await page.getByRole('button', { name: 'Save draft' }).click();
    await page.getByText('Saved as a draft: version 1.').waitFor();
    await page.getByRole('link', { name: 'All posts' }).click();
    await page.getByLabel('Show', { exact: true }).selectOption('Published');
    await page.getByText('There are no published posts.').waitFor();
    await page.getByLabel('Show', { exact: true }).selectOption('Drafts');
    await page.getByText('1 draft.').waitFor();
    await page.getByLabel('Search').fill('first');
    await page.getByText('1 draft found.').waitFor();
    expect(page.url()).toMatch(/#\/posts\?q=first&status=draft$/);
    await page.reload();
    await page.getByText('1 draft found.').waitFor();
    expect(await page.getByLabel('Show', { exact: true }).inputValue()).toBe('draft');
    expect(await findFaults(page, look)).toEqual([]);
    await page.getByRole('link', { name: 'Durable queues' }).click();
    await page.getByRole('button', { name: 'Publish' }).click();
    await page.getByText('Published: version 2.').waitFor();
    await takePicture(page, `post-${look.width}-${look.colorScheme}`);
    expect(await findFaults(page, look)).toEqual([]);
    await page.getByRole('link', { name: 'All posts' }).click();
    await page.getByLabel('Search').fill('nothing like this');
    await page.getByText('No posts found.').waitFor();
    await page.getByLabel('Search').fill('first');
    await page.getByText('1 post found.').waitFor();
    await page.getByRole('link', { name: 'Durable queues' }).click();
    for (const _ of ['asks', 'deletes']) await page.getByRole('button', { name: 'Delete this post' }).click();
    await page.getByText('There are no posts yet.').waitFor();
    expect(complaints).toEqual([]);
    await context.close();
  });

  it('typed while the session ends -> are there for who signs in again', async () => {
    const { page, context } = await open('posts/new');
    await page.getByLabel('Text, in Markdown').fill('one');
    await page.getByRole('button', { name: 'Publish' }).click();
    await page.getByText('Published: version 1.').waitFor();
    // The session is over, as the next preview finds out: who signs in again finds the text.
    await context.clearCookies();
    await page.getByLabel('Text, in Markdown').fill('not saved yet');
    await page.getByLabel('Password').waitFor();
    await page.getByLabel('Name').fill(admin.name);
    await page.getByLabel('Password').fill(admin.secret);
    await page.getByRole('button', { name: 'Sign in' }).click();
    expect(await page.getByLabel('Text, in Markdown').inputValue()).toBe('not saved yet');
    await context.close();
  });
});
