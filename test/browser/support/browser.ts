import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { findChromium } from './chromium.js';

/** The settings of a browser. */
export interface Look {
  readonly width: number;
  readonly colorScheme: 'light' | 'dark';
}

/** Between them they meet each width and each scheme, and are looked at for faults. */
const examined: readonly Look[] = [
  { width: 1280, colorScheme: 'light' },
  { width: 390, colorScheme: 'dark' },
];

/** A desktop in light and a phone in dark; for pictures, whose folder `SCREENSHOTS` names, also the other way round. */
export const looks: readonly Look[] = [
  ...examined,
  ...(process.env.SCREENSHOTS
    ? ([
        { width: 1280, colorScheme: 'dark' },
        { width: 390, colorScheme: 'light' },
      ] as const)
    : []),
];

/** A page of its own session, and what went wrong on it. */
export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** The browser's complaints: errors of scripts, and all that the policy of a page has refused. */
  readonly complaints: string[];
}

const flags = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
];

export const openBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: findChromium() ?? 'chromium', args: flags });

/** Of a change that came second; the browser reports each answer that is an error. */
const expected = /^Failed to load resource: the server responded with a status of 412 /;

/** For an event on a machine that is busy: no test is about how long it takes. */
const patienceMs = 120_000;

export async function visit(browser: Browser, look: Look = looks[0] as Look): Promise<Visit> {
  const { width, colorScheme } = look;
  const viewport = { width, height: width > 500 ? 900 : 844 };
  const context = await browser.newContext({
    viewport,
    colorScheme,
    locale: 'en-GB',
    reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(patienceMs);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    const text = message.text();
    if (['error', 'warning'].includes(message.type()) && !expected.test(text)) complaints.push(text);
  });
  return { page, context, complaints };
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeResults {
  violations: { id: string; impact: string; nodes: { target: unknown; failureSummary: string }[] }[];
}

/**
 * The page's serious violations of accessibility, and its elements that make it scroll sideways; none in a look that is
 * for pictures alone.
 */
export async function findFaults(page: Page, look: Look = looks[0] as Look): Promise<string[]> {
  if (!examined.includes(look)) return [];
  await page.evaluate(axe);
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  const grave = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  return [
    ...(await page.evaluate(findMisplaced)),
    ...grave.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target} ${node.failureSummary}`)),
    ...(excess > 0 ? [`the page is ${excess} pixels too wide`] : []),
  ];
}

/**
 * Labels that are not right above their field, or beside their checkbox, and cells of tables that a narrow page cuts;
 * runs in the page.
 */
function findMisplaced(): string[] {
  const place = (element: Element) => element.getBoundingClientRect();
  const areBeside = (a: Element, b: Element) =>
    place(a).top < place(b).bottom && place(b).top < place(a).bottom;
  const labels = [...document.querySelectorAll('label')].filter((label) => {
    const { control } = label;
    if (control === null || place(label).width <= 1) return false;
    const text = control.nextElementSibling;
    if (label.contains(control)) return text !== null && !areBeside(control, text);
    const isAbove = place(label).bottom <= place(control).top + 1;
    return !isAbove || Math.abs(place(label).left - place(control).left) > 2;
  });
  const cells = [...document.querySelectorAll('.scroll td')].filter((cell) => place(cell).right > innerWidth);
  return [
    ...labels.map(({ innerText }) => `the label ${innerText} is away from its field`),
    ...(innerWidth < 500 ? cells.map(({ textContent }) => `the cell ${textContent} is cut`) : []),
  ];
}

/** Whether this run writes the pictures of the docs. */
export const writesPictures = Boolean(process.env.PICTURES);

/** Writes a picture of what the page shows into `docs/images`. */
export const writePicture = async (page: Page, name: string): Promise<void> =>
  void (await page.screenshot({ path: `docs/images/${name}.png`, animations: 'disabled' }));

/** Writes a picture of the page into the folder that the variable names; nowhere without it. */
export async function takePicture(page: Page, name: string): Promise<void> {
  const folder = process.env.SCREENSHOTS;
  if (folder) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}
