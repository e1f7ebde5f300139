import { describe, expect, it } from 'vitest';
import { type Bar, type Chart, drawBarChart } from './bar-chart.js';

const chartOf = (...bars: Bar[]): Chart => ({
  title: 'a < b & "c"',
  series: [
    { name: 'one', color: '#111111' },
    { name: 'two', color: '#222222' },
  ],
  panels: [{ title: 'panel', groups: [{ label: '32', bars }] }],
});

const bar = (...values: number[]): Bar => ({
  segments: values.map((value, place) => ({ series: place === 0 ? 'one' : 'two', value })),
});

/** Rectangles of the panel: those of the legend come first. */
const rectanglesIn = (svg: string) =>
  [...svg.matchAll(/<rect x="([\d.]+)" width="[\d.]+" y="([\d.]+)" height="([\d.]+)" fill="(#\d+)"/g)].map(
    ([, x, y, height, color]) => ({ x: Number(x), y: Number(y), height: Number(height), color }),
  );

const textsIn = (svg: string, kind: string) =>
  [...svg.matchAll(new RegExp(`<text class="${kind}"[^>]*>([^<]*)<`, 'g'))].map(([, content]) => content);

describe('drawBarChart', () => {
  it('draws bars in proportion, side by side, with their totals above', () => {
    const svg = drawBarChart(chartOf(bar(2000), bar(1000)));
    const [first, second] = rectanglesIn(svg);
    expect(first?.height).toBe(2 * (second?.height ?? 0));
    expect(second?.x).toBeGreaterThan(first?.x ?? 0);
    expect(textsIn(svg, 'value')).toEqual(['2,000', '1,000']);
  });

  it('puts segments on top of one another', () => {
    const svg = drawBarChart(chartOf(bar(1, 3)));
    const [lower, upper] = rectanglesIn(svg);
    expect(upper?.color).toBe('#222222');
    expect((upper?.y ?? 0) + (upper?.height ?? 0)).toBe(lower?.y);
    expect(textsIn(svg, 'value')).toEqual(['4.00']);
  });

  it('has round numbers at its scale, and room for the spread', () => {
    const svg = drawBarChart(chartOf({ ...bar(900), spread: { least: 800, most: 1700 } }));
    expect(textsIn(svg, 'tick')).toEqual(['0', '500', '1,000', '1,500', '2,000']);
    expect(svg).toContain('class="spread"');
  });

  it('shows what was not measured as such', () => {
    const svg = drawBarChart(chartOf(bar(), bar()));
    expect(rectanglesIn(svg)).toEqual([]);
    expect(textsIn(svg, 'value')).toEqual(['–', '–']);
  });

  it('is one well-formed document with a title, for light and dark pages', () => {
    const svg = drawBarChart(chartOf(bar(1)));
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" [^>]*role="img"/);
    expect(svg).toContain('<title id="title">a &lt; b &amp; &quot;c&quot;</title>');
    expect(svg).toContain('prefers-color-scheme: dark');
    expect(svg.match(/<text/g)?.length).toBe(svg.match(/<\/text>/g)?.length);
    expect(svg).not.toContain('NaN');
  });
});
