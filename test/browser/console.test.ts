import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { routes } from '../../console/app.tsx';
import { findFaults, looks, takePicture, type Visit, visit } from './support/browser.js';
import { findChromium } from './support/chromium.js';
import { admin, openView, useConsole } from './support/console.js';

describe.skipIf(findChromium() === undefined)('the console in a browser', () => {
  const opened = useConsole();
  const visits: Visit[] = [];

  const open = async (): Promise<Visit> => {
    const visited = await visit(opened.browser);
    visits.push(visited);
    return visited;
  };
  const openSettings = (page: Page) => page.getByRole('heading', { name: 'Settings' }).click();

  it('signing in by the keyboard alone -> a wrong password is refused, the right one leads to where one wanted to be', async () => {
    const { page, complaints } = await open();
    await page.goto(`${opened.deployment.url}/admin#/pools/anthropic`);
    await page.getByLabel('Name').waitFor();
    await page.keyboard.type(admin.name);
    await page.keyboard.press('Tab');
    await page.keyboard.type('wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    expect(await page.getByLabel('Password').evaluate((field) => field === document.activeElement)).toBe(
      true,
    );
    await page.keyboard.type(admin.secret);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Anthropic', level: 1 }).waitFor();
    // Of the wrong password alone: the browser reports each answer that is an error.
    expect(complaints).toEqual([expect.stringContaining('status of 401')]);
    await page.reload();
    await page.getByRole('heading', { name: 'Anthropic', level: 1 }).waitFor();
  });

  it('a slider moved by the keyboard, a suggestion taken -> all workers follow', async () => {
    const { page, complaints } = await open();
    // The API suggests nothing before thirty jobs and five minutes.
    await page.route('**/admin/pools/openai', async (route) => {
      const response = await route.fetch();
      const suggestion = { perWorker: 7, arrivalsPerSecond: 1, meanMs: 1000, jobs: 300 };
      await route.fulfill({ response, json: { ...(await response.json()), suggestion } });
    });
    await openView(page, opened.deployment.url, 'pools/openai');
    await openSettings(page);
    const slider = page.getByRole('slider');
    await slider.waitFor();
    // To the slider with nothing but Tab.
    for (let n = 0; n < 60 && !(await slider.evaluate((one) => one === document.activeElement)); n += 1)
      await page.keyboard.press('Tab');
    const before = Number(await slider.inputValue());
    await page.keyboard.press('ArrowRight');
    await page.getByText(`Version 1 by ${admin.name}`).waitFor();
    await page.getByText('at 2 of 2 workers').waitFor();
    expect(Number(await slider.inputValue())).toBe(before + 1);
    await page.getByText(`0 of ${2 * (before + 1)}`).waitFor();
    const button = { name: 'Set 7 jobs at once in each worker' };
    await page.getByRole('button', button).click();
    await page.getByText('Change the jobs at once in each worker to 7?').waitFor();
    expect(Number(await slider.inputValue())).toBe(before + 1);
    await page.getByRole('group').getByRole('button', button).click();
    await page.getByText('Version 2').waitFor();
    expect(await slider.inputValue()).toBe('7');
    await page.getByRole('button', { name: 'Reset' }).first().click();
    await page.getByText('Version 3').waitFor();
    expect(Number(await slider.inputValue())).toBe(before);
    expect(complaints).toEqual([]);
  });

  it('a pool paused and opened on the board -> is asked for once more, and followed by all workers', async () => {
    const { page, complaints } = await open();
    await openView(page, opened.deployment.url);
    const bedrock = page.getByRole('row', { name: /Amazon Bedrock/ });
    await bedrock.getByRole('button', { name: 'Pause Amazon Bedrock' }).click();
    await bedrock.getByText('0 waiting chats stay queued; 0 running calls finish.').waitFor();
    const asking = bedrock.getByRole('group');
    await asking.getByRole('button', { name: 'Pause Amazon Bedrock' }).click();
    await bedrock.getByText('paused: by an operator').waitFor();
    await bedrock.getByRole('button', { name: 'Open Amazon Bedrock' }).click();
    await bedrock.getByText('serving').waitFor();
    await bedrock.getByRole('link', { name: '0', exact: true }).click();
    await page.getByText('No job of this pool is waiting.').waitFor();
    expect(complaints).toEqual([]);
  });

  it('two operators change one setting -> the second is shown who was first, and loses nothing', async () => {
    const [one, other] = [await open(), await open()];
    for (const { page } of [one, other]) {
      await openView(page, opened.deployment.url, 'pools/vertexai');
      await openSettings(page);
    }
    const mine = one.page.getByLabel('Jobs at once, exactly');
    await mine.waitFor();
    // Begun, and not yet left.
    await mine.fill('207');
    const theirs = other.page.getByLabel('Jobs at once, exactly');
    await theirs.fill('33');
    await theirs.press('Enter');
    await other.page.getByText('at 2 of 2 workers').waitFor();
    await one.page.getByText(/Version 1 /).waitFor();
    await mine.press('Enter');
    const notice = one.page.getByText(/saved version 1 before you/);
    await notice.waitFor();
    await one.page.getByText('now 33; you wanted 207').waitFor();
    await takePicture(one.page, 'conflict');
    await one.page.getByRole('button', { name: 'Apply mine anyway' }).click();
    await one.page.getByText('Version 2').waitFor();
    expect(await theirs.inputValue().then(Number)).toBeGreaterThan(0);
    await other.page.getByText('Version 2').waitFor();
    expect(await theirs.inputValue()).toBe('207');
  });

  it.each([...routes.map(({ view, title }) => [view, title]), ['pools/openai', 'OpenAI']])(
    'the view %s in each look -> is whole and accessible',
    async (view = '', title = '') => {
      for (const look of looks) {
        const { page, context, complaints } = await visit(opened.browser, look);
        await openView(page, opened.deployment.url, view);
        await page.getByRole('heading', { name: title, level: 1 }).waitFor();
        await page.getByText('live', { exact: true }).waitFor();
        if (view === 'pools/openai') await openSettings(page);
        if (view === 'pools/openai') await page.getByLabel('Fallback', { exact: true }).waitFor();
        if (view === 'requests') await page.getByText('Filter', { exact: true }).click();
        await takePicture(page, `${view.replace('/', '-')}-${look.width}-${look.colorScheme}`);
        expect(await findFaults(page, look), JSON.stringify(look)).toEqual([]);
        expect(complaints).toEqual([]);
        await context.close();
      }
    },
  );

  it('signed out everywhere -> every browser asks for the password', async () => {
    const [one, other] = [await open(), await open()];
    for (const { page } of [one, other]) await openView(page, opened.deployment.url);
    await one.page.getByText(admin.name, { exact: true }).click();
    await one.page.getByRole('button', { name: 'Sign out everywhere' }).click();
    for (const { page } of [one, other]) await page.getByLabel('Password').waitFor();
    for (const visited of visits) await visited.context.close();
  });
});
