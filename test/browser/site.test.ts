import { beforeAll, describe, expect, it } from 'vitest';
import { findFaults, looks, takePicture, visit } from './support/browser.js';
import { findChromium } from './support/chromium.js';
import { useConsole } from './support/console.js';

describe.skipIf(findChromium() === undefined)('the site in a browser', () => {
  const opened = useConsole({ workers: 1 });
  beforeAll(async () => {
    const post = {
      ...{ title: 'A first post', tags: ['news'], slug: 'a-first-post' },
      content: 'It has *words*, `code`[^1] and a table.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[^1]: A note.',
    };
    expect((await opened.deployment.blog('/blogs', { json: post })).status).toBe(201);
  });

  it.each([
    ['the front page', '/', 'Quillgate'],
    ['the blog', '/blogs', 'A first post'],
    ['a post', '/blogs/a-first-post', 'A first post'],
    ['the API’s page', '/docs', 'Quillgate'],
    ['an address that nothing serves', '/nothing-here', 'Not found'],
    ['the form to sign in', '/admin', 'Quillgate console'],
  ])('%s in each look -> is whole and accessible', async (name, path, heading) => {
    for (const look of looks) {
      const { page, context, complaints } = await visit(opened.browser, look);
      await page.goto(opened.deployment.url + path);
      // The browser reports the answer of 404.
      if (path === '/nothing-here') complaints.length = 0;
      await page.getByRole('heading', { name: heading }).first().waitFor();
      await takePicture(page, `${name.replaceAll(/\W+/g, '-')}-${look.width}-${look.colorScheme}`);
      if (path === '/docs') await page.locator('.opblock-summary').first().waitFor();
      const faults = await findFaults(page, look);
      // Swagger UI is not ours: of it, that it can be read is what counts.
      const own = path === '/docs' ? faults.filter((fault) => fault.startsWith('color-contrast')) : faults;
      expect(own, JSON.stringify(look)).toEqual([]);
      const background = await page.evaluate(
        () => getComputedStyle(document.documentElement).backgroundColor,
      );
      if (path === '/docs' && look.colorScheme === 'dark') expect(background).not.toMatch(/255|rgba\(0/);
      expect(complaints).toEqual([]);
      await context.close();
    }
  });
});
