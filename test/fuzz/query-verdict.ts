import { isBlank } from '../../shared/conversation.js';
import type { Verdict } from './body-verdict.js';
import type { DescribedOperation } from './document.js';

/** The verdict on a request's query; undecodable parts have the value undefined. */
export function verdictOnQuery(operation: DescribedOperation, target: string): Verdict {
  const at = target.indexOf('?');
  const pairs =
    at < 0
      ? []
      : target
          .slice(at + 1)
          .split('&')
          .map(readPair);
  const known = pairs.filter(([name]) => operation.acceptsParameter(name, '') !== undefined);
  const isTwice = new Set(known.map(([name]) => name)).size < known.length;
  if (isTwice || known.some((pair) => !isAccepted(operation, pair))) return 'refused';
  const isUnsayable = known.some(
    ([name, value = '']) => name === 'cursor' || isBlank(value) || value.includes('\0'),
  );
  return isUnsayable ? 'either' : 'taken';
}

type Pair = [name: string, value: string | undefined];

function readPair(pair: string): Pair {
  const at = pair.indexOf('=');
  return at < 0 ? [decode(pair) ?? '', ''] : [decode(pair.slice(0, at)) ?? '', decode(pair.slice(at + 1))];
}

function decode(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

const isAccepted = (operation: DescribedOperation, [name, value]: Pair): boolean =>
  value !== undefined && operation.acceptsParameter(name, typed(name, value)) === true;

const booleans = new Map([
  ['true', true],
  ['false', false],
]);

function typed(name: string, value: string): unknown {
  if (name === 'limit') return /^-?\d+$/.test(value) ? Number(value) : value;
  return name === 'envelope' ? (booleans.get(value) ?? value) : value;
}
