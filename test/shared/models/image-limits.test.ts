import { describe, expect, it } from 'vitest';
import { providerIds } from '../../../shared/contracts/contract.js';
import type { ImagePart, ImageType } from '../../../shared/conversation.js';
import { unsupportedImage } from '../../../shared/models/image-limits.js';

const stored = (mediaType: ImageType, bytes: number): ImagePart => ({
  ...{ type: 'image', mediaType, bytes },
  sha256: 'a'.repeat(64),
});
const at = (url: string): ImagePart => ({ type: 'image', url });
const [small, large] = [3_932_160, 7_340_032];

describe('unsupportedImage', () => {
  it.each<{ what: string; image: ImagePart; by: readonly string[] }>([
    { what: 'a PNG', image: stored('image/png', small), by: [...providerIds] },
    { what: 'a JPEG', image: stored('image/jpeg', small), by: [...providerIds] },
    { what: 'a WebP', image: stored('image/webp', small), by: [...providerIds] },
    { what: 'a GIF', image: stored('image/gif', 100), by: ['openai', 'anthropic', 'bedrock'] },
    { what: 'more than 3.75 MB', image: stored('image/png', small + 1), by: ['openai', 'vertexai'] },
    { what: '7 MB', image: stored('image/png', large), by: ['openai', 'vertexai'] },
    { what: 'more than 7 MB', image: stored('image/png', large + 1), by: [] },
    { what: 'an https: URL', image: at('https://images.example.org/cat.png'), by: ['openai', 'anthropic'] },
    { what: 'HTTPS: in capitals', image: at('HTTPS://images.example.org/'), by: ['openai', 'anthropic'] },
    { what: 'an http: URL', image: at('http://images.example.org/cat.png'), by: [] },
    { what: 'a file: URL', image: at('file:///etc/passwd'), by: [] },
    { what: 'a path', image: at('cat.png'), by: [] },
    { what: 'https: without a host', image: at('https://'), by: [] },
    { what: 'a host that is no ASCII', image: at('https://bücher.example.org/'), by: [] },
    { what: 'a host with escapes', image: at('https://b%C3%BCcher.example.org/'), by: [] },
    { what: 'any path', image: at('https://a.example.org:8443/ü?x=%20#y'), by: ['openai', 'anthropic'] },
    { what: '2,048 characters', image: at(`https://a.co/${'b'.repeat(2035)}`), by: ['openai', 'anthropic'] },
    { what: '2,049 characters', image: at(`https://a.co/${'b'.repeat(2036)}`), by: [] },
    { what: 'the metadata of a cloud', image: at('https://169.254.169.254/latest/meta-data'), by: [] },
    { what: 'this machine', image: at('https://[::1]:8080/'), by: [] },
    { what: 'an address in another notation', image: at('https://0x7f.1/'), by: [] },
    { what: 'a service of a cluster', image: at('https://kubernetes.default.svc/api'), by: [] },
    { what: 'a name of a private network', image: at('https://redis/'), by: [] },
    { what: 'a name and a password', image: at('https://admin:admin@images.example.org/cat.png'), by: [] },
    { what: 'a name alone', image: at('https://admin@images.example.org/cat.png'), by: [] },
    { what: 'a host behind a backslash', image: at('https://images.example.org\\@10.0.0.5/'), by: [] },
  ])('lets $what go to $by', ({ image, by }) => {
    expect(providerIds.filter((provider) => unsupportedImage(provider, image) === undefined)).toEqual(by);
  });
});
