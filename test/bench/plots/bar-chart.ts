import { number } from '../table.js';

/** A chart of panels one below the other, each of groups of bars with a scale of its own. */
export interface Chart {
  readonly title: string;
  /** In the order of the legend. */
  readonly series: readonly Series[];
  readonly panels: readonly Panel[];
}

export interface Series {
  readonly name: string;
  readonly color: string;
}

export interface Panel {
  readonly title: string;
  readonly groups: readonly Group[];
}

/** Bars side by side, and what they have in common. */
export interface Group {
  readonly label: string;
  readonly bars: readonly Bar[];
}

/** Segments on top of one another; without any, nothing was measured. */
export interface Bar {
  readonly segments: readonly Segment[];
  /** The least and the most of the rounds. */
  readonly spread?: { readonly least: number; readonly most: number } | undefined;
}

export interface Segment {
  /** Name of its series. */
  readonly series: string;
  readonly value: number;
}

const width = 680;
const left = 64;
const headHeight = 62;
const panelHeight = 190;
/** Of the bars; the rest of a panel is its title above and the labels below. */
const plotHeight = 120;
const plotTop = 36;
const steps = 4;

/** Its colours fit light and dark pages: the background is the page's own. */
const style = `
text { font: 12px system-ui, sans-serif; fill: #333 }
.title { font-size: 15px; font-weight: 600 }
.panel { font-weight: 600 }
.tick { fill: #666; text-anchor: end }
.value, .group { text-anchor: middle }
.value { font-size: 11px }
.grid { stroke: #8884 }
.spread { stroke: #333; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .tick { fill: #aaa } .spread { stroke: #ddd } }
`;

/** The chart as an SVG document that needs nothing besides. */
export function drawBarChart({ title, series, panels }: Chart): string {
  const height = headHeight + panels.length * panelHeight;
  const colors = new Map(series.map(({ name, color }) => [name, color]));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">`,
    `<title id="title">${escapeText(title)}</title>`,
    `<style>${style}</style>`,
    text('title', { x: 8, y: 20 }, title),
    ...series.map(drawLegend),
    ...panels.map((panel, place) => drawPanel(panel, headHeight + place * panelHeight, colors)),
    '</svg>\n',
  ].join('\n');
}

const legendWidth = 110;

function drawLegend({ name, color }: Series, place: number): string {
  const x = left + place * legendWidth;
  return `${rectangle({ x, y: 34, width: 12, height: 12 }, color)}${text('legend', { x: x + 18, y: 44 }, name)}`;
}

function drawPanel({ title, groups }: Panel, top: number, colors: ReadonlyMap<string, string>): string {
  const most = niceAbove(Math.max(0, ...groups.flatMap(({ bars }) => bars.map(topOf))));
  const bottom = top + plotTop + plotHeight;
  const yOf = (value: number) => bottom - (value / most) * plotHeight;
  const groupWidth = (width - left) / Math.max(1, groups.length);
  return [
    text('panel', { x: left, y: top + 14 }, title),
    ...Array.from({ length: steps + 1 }, (_, step) => drawTick((most * step) / steps, yOf)),
    ...groups.map((group, place) => {
      const x = left + (place + 0.5) * groupWidth;
      return `${text('group', { x, y: bottom + 16 }, group.label)}\n${drawBars(group.bars, { x, groupWidth, yOf, colors })}`;
    }),
  ].join('\n');
}

function drawTick(value: number, yOf: (value: number) => number): string {
  const y = round(yOf(value));
  return `<line class="grid" x1="${left}" x2="${width}" y1="${y}" y2="${y}"/>${text('tick', { x: left - 6, y: y + 4 }, value.toLocaleString('en-US'))}`;
}

interface Place {
  /** The middle of the group. */
  x: number;
  groupWidth: number;
  yOf(value: number): number;
  colors: ReadonlyMap<string, string>;
}

const widestBar = 52;

function drawBars(bars: readonly Bar[], { x, groupWidth, yOf, colors }: Place): string {
  const barWidth = Math.min(widestBar, (groupWidth * 0.8) / Math.max(1, bars.length));
  const start = x - (barWidth * bars.length) / 2;
  return bars
    .map((bar, place) => {
      const barX = start + place * barWidth;
      const middle = barX + barWidth / 2;
      const label = bar.segments.length > 0 ? short(totalOf(bar)) : '–';
      const spread = bar.spread
        ? `<line class="spread" x1="${round(middle)}" x2="${round(middle)}" y1="${round(yOf(bar.spread.least))}" y2="${round(yOf(bar.spread.most))}"/>`
        : '';
      const segments = drawSegments(bar, { x: barX + 2, width: barWidth - 4 }, { yOf, colors });
      return `${segments}${spread}${text('value', { x: middle, y: yOf(topOf(bar)) - 4 }, label)}`;
    })
    .join('\n');
}

function drawSegments(
  { segments }: Bar,
  across: { x: number; width: number },
  { yOf, colors }: Pick<Place, 'yOf' | 'colors'>,
): string {
  let below = 0;
  return segments
    .map(({ series, value }) => {
      const y = yOf(below + value);
      const height = yOf(below) - y;
      below += value;
      return rectangle({ ...across, y, height }, colors.get(series) ?? '#888');
    })
    .join('');
}

const totalOf = ({ segments }: Bar): number => segments.reduce((sum, { value }) => sum + value, 0);

const topOf = (bar: Bar): number => Math.max(totalOf(bar), bar.spread?.most ?? 0);

/** Where the scale ends, so that its steps are round numbers too. */
function niceAbove(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 1.2, 1.6, 2, 3, 4, 6, 8].find((factor) => value <= factor * power) ?? 10);
}

/** With as many digits as are read. */
const short = (value: number): string => number(value, value >= 100 ? 0 : value >= 10 ? 1 : 2);

const round = (value: number): number => Math.round(value * 10) / 10;

function rectangle(area: { x: number; y: number; width: number; height: number }, color: string): string {
  const attributes = Object.entries(area).map(([name, value]) => `${name}="${round(value)}"`);
  return `<rect ${attributes.join(' ')} fill="${color}"/>`;
}

const text = (kind: string, { x, y }: { x: number; y: number }, content: string): string =>
  `<text class="${kind}" x="${round(x)}" y="${round(y)}">${escapeText(content)}</text>`;

const escapeText = (content: string): string =>
  content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
