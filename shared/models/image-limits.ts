import type { ProviderId } from '../contracts/contract.js';
import type { ImagePart } from '../conversation.js';
import { isPublicHost } from '../urls/hosts.js';
import { providerModels } from './provider-models.js';

const maxUrlLength = 2048;
/** Without a name and a password. Other hosts take a time to parse that is quadratic to their length. */
const httpsInAscii = /^https:\/\/[\w.:[\]-]+([/?#]|$)/i;

/** Why the provider cannot be sent this image, to follow the name of its field; undefined if it can. */
export function unsupportedImage(provider: ProviderId, part: ImagePart): string | undefined {
  const { maxBytes, takesGif, fetches } = providerModels[provider].images;
  if ('url' in part) {
    if (!fetches) return 'must be a data: URL: this provider fetches no images, and neither does this server';
    return findUrlDefect(part.url);
  }
  if (part.mediaType === 'image/gif' && !takesGif) return 'is a GIF, which this provider does not take';
  if (part.bytes > maxBytes) return `has more than the ${maxBytes} bytes that this provider takes`;
  return undefined;
}

function findUrlDefect(url: string): string | undefined {
  if (url.length > maxUrlLength) return `is longer than ${maxUrlLength} characters`;
  const parsed = httpsInAscii.test(url) ? URL.parse(url) : null;
  if (parsed === null) return 'must be a data: URL, or an https: URL of a host in ASCII, without a password';
  return isPublicHost(parsed.hostname) ? undefined : 'must have a public host, or be a data: URL';
}

/** Whether an image has to be fetched from another host than these, as `IMAGE_HOSTS` lists them. */
export function isFromElsewhere(image: ImagePart, hosts: readonly string[]): boolean {
  if (!('url' in image) || hosts.includes('https')) return false;
  const { host = '', hostname = '' } = URL.parse(image.url) ?? {};
  return !hosts.some((allowed) => {
    const [name, pattern] = [allowed.includes(':') ? host : hostname, allowed.toLowerCase()];
    return pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern;
  });
}
