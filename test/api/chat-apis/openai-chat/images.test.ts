import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { RequestImages, readDataUrl, UnfitImage } from '../../../../api/chat-apis/openai-chat/images.js';
import type { ImageType } from '../../../../shared/conversation.js';
import { tinyImages } from '../../../support/images.js';

const png = tinyImages['image/png'];
const dataUrl = (bytes: Uint8Array, claimed = 'image/png') =>
  `data:${claimed};base64,${Buffer.from(bytes).toString('base64')}`;

describe('readDataUrl', () => {
  it.each(Object.entries(tinyImages).map(([type, bytes]) => ({ type: type as ImageType, bytes })))(
    'recognises $type by its content, whatever the URL claims',
    ({ type, bytes }) => {
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      for (const claimed of ['image/png', 'text/html', '', 'IMAGE/PNG;charset=x'])
        expect(readDataUrl(dataUrl(bytes, claimed))).toEqual({
          part: { type: 'image', mediaType: type, sha256, bytes: bytes.length },
          bytes,
        });
    },
  );

  const base64 = png.toString('base64');
  it.each([
    { what: 'HTML that claims to be a PNG', url: dataUrl(Buffer.from('<html></html>')) },
    { what: 'SVG', url: dataUrl(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'image/svg+xml') },
    { what: 'the first bytes of a PNG alone', url: dataUrl(png.subarray(0, 7)) },
    { what: 'RIFF that is no WebP', url: dataUrl(Buffer.from('RIFF\x24\0\0\0WAVEfmt ')) },
    { what: 'nothing', url: 'data:image/png;base64,' },
    { what: 'no comma', url: 'data:image/png;base64' },
    { what: 'text that is not base64', url: `data:image/png,${base64}` },
    { what: 'a line break', url: `data:image/png;base64,${base64.slice(0, 40)}\r\n${base64.slice(40)}` },
    { what: 'a comma in the text', url: `data:image/png;base64,${base64.slice(0, 40)},${base64.slice(41)}` },
    { what: 'percent encoding', url: `data:image/png;base64,${base64.replace('==', '%3D%3D')}` },
    { what: 'no padding', url: `data:image/png;base64,${base64.replace('==', '')}` },
    { what: 'padding in the middle', url: `data:image/png;base64,${base64}${base64}` },
    { what: 'too much padding', url: `data:image/png;base64,${base64.slice(0, -2)}====` },
    { what: 'text that is not ASCII', url: `data:image/png;base64,${base64.slice(0, -4)}é≠==` },
    { what: 'a comma far behind', url: `data:${'a'.repeat(300)};base64,${base64}` },
  ])('refuses $what', ({ url }) => {
    expect(() => readDataUrl(url)).toThrow(UnfitImage);
  });
});

describe('RequestImages', () => {
  it('leaves an address to the provider, and its check to the table of providers', () => {
    const images = new RequestImages(1000);
    for (const url of ['https://images.example/cat.png', 'http://images.example/cat.png', 'cat.png'])
      expect(images.read(url)).toEqual({ type: 'image', url });
    expect(images.uploads).toEqual([]);
  });

  it('gives each image once to be stored, however often it is sent', () => {
    const images = new RequestImages(1000);
    const parts = [images.read(dataUrl(png)), images.read(dataUrl(png, '').replace('data:', 'DATA:'))];
    expect(parts[0]).toEqual(parts[1]);
    expect(images.uploads).toEqual([{ part: parts[0], bytes: png }]);
  });

  it('bounds the decoded bytes of all images together', () => {
    const tooLarge = expect.objectContaining({ code: 'payload_too_large', status: 413 });
    const images = new RequestImages(3 * png.length - 1);
    images.read(dataUrl(png));
    images.read(dataUrl(png));
    expect(() => images.read(dataUrl(png))).toThrow(tooLarge);
    expect(new RequestImages(png.length).read(dataUrl(png))).toMatchObject({ bytes: png.length });
    expect(() => new RequestImages(1000).read(`data:image/png;base64,${'A'.repeat(4000)}`)).toThrow(tooLarge);
  });
});
