import type { FleetProvider } from '../../shared/contracts/fleet-contract.ts';
import { Sparkline } from '../parts/chart.tsx';
import { Age } from '../parts/connection.tsx';
import { useFollowed } from '../parts/followed.ts';
import { formatDuration, formatNumber, formatShare } from '../parts/format.ts';
import { p95Of } from './describe.ts';
import { loadOf, openSamples } from './samples.ts';
import type { PoolSettingsEditor } from './settings.ts';

/** The load of a provider as numbers, with a line beside each. */
export function PoolNumbers({ pool, editor }: { pool: FleetProvider; editor: PoolSettingsEditor }) {
  const { known } = useFollowed(() => openSamples(pool.provider), [pool.provider]);
  const p95Ms = p95Of(pool.workers);
  const numbers = [
    ['Waiting', <Waiting key="waiting" pool={pool} />],
    ['Failed chats, five minutes', <Failed key="failed" pool={pool} />],
    ['p95, last minute', p95Ms === undefined ? '–' : formatDuration(p95Ms)],
  ] as const;
  return (
    <dl class="numbers">
      <div class="wide">
        <dt>In flight</dt>
        <dd>
          <strong>{formatNumber(pool.inFlight)}</strong> of <BoundedConcurrency pool={pool} editor={editor} />
          <Sparkline values={loadOf(known.value?.samples ?? [])} max={pool.concurrency} />
        </dd>
      </div>
      {numbers.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The jobs at once of all workers, or the operators' bound where that is lower. */
function BoundedConcurrency({ pool, editor }: { pool: FleetProvider; editor: PoolSettingsEditor }) {
  const global = editor.known.value?.concurrency.global;
  const isGlobal = global !== undefined && global < pool.concurrency;
  return (
    <>
      {formatNumber(isGlobal ? global : pool.concurrency)}{' '}
      <span class="soft">
        {isGlobal ? `bound over all; workers allow ${pool.concurrency}` : 'over all workers'}
      </span>
    </>
  );
}

function Waiting({ pool: { queue } }: { pool: FleetProvider }) {
  if (queue === undefined) return <>unknown</>;
  return (
    <>
      <strong>{formatNumber(queue.waiting)}</strong>
      {queue.oldestSince && (
        <span class="soft">
          {' '}
          oldest <Age since={queue.oldestSince} />
        </span>
      )}
    </>
  );
}

function Failed({ pool: { chats } }: { pool: FleetProvider }) {
  if (chats === undefined) return <>–</>;
  const share = chats.failed / chats.ended;
  return (
    <>
      <span class={share > 0.1 ? 'bad' : share > 0.01 ? 'warn' : ''}>{formatShare(share)}</span>
      <span class="soft"> of {formatNumber(chats.ended)}</span>
    </>
  );
}
