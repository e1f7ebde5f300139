import type { FleetProvider } from '../../shared/contracts/fleet-contract.ts';
import { Bar } from '../parts/chart.tsx';
import { Age } from '../parts/connection.tsx';
import { Facts } from '../parts/field.tsx';
import { formatDuration, formatNumber, formatShare } from '../parts/format.ts';
import { p95Of } from './describe.ts';
import type { PoolSettingsEditor } from './settings.ts';

interface LoadProps {
  pool: FleetProvider;
  editor: PoolSettingsEditor;
}

/** The load of a provider as numbers. */
export function PoolNumbers({ pool, editor }: LoadProps) {
  return (
    <Facts
      facts={[
        ['In flight', <Load pool={pool} editor={editor} />],
        ['Waiting', <Waiting pool={pool} />],
        ['Failed chats, five minutes', <Failed pool={pool} />],
        ['p95, last minute', formatP95(pool)],
      ]}
    />
  );
}

/** The jobs that run, of the jobs at once of all workers, or of the operators' bound where that is lower. */
export function Load({ pool: { inFlight, concurrency }, editor }: LoadProps) {
  const { global = concurrency } = editor.known.value?.concurrency ?? {};
  const bound = Math.min(global, concurrency);
  const why = global < concurrency ? `bound over all; workers allow ${concurrency}` : 'over all workers';
  return (
    <span class="load" title={why}>
      <Bar parts={[['called', inFlight]]} of={bound} />
      {formatNumber(inFlight)} of {formatNumber(bound)}
    </span>
  );
}

export function Waiting({ pool: { queue } }: { pool: FleetProvider }) {
  if (queue === undefined) return <>unknown</>;
  return (
    <>
      {formatNumber(queue.waiting)}
      {queue.oldestSince && (
        <>
          , oldest <Age since={queue.oldestSince} />
        </>
      )}
    </>
  );
}

/** The share of failed chats, larger than what is beside it. */
export function Failed({ pool: { chats } }: { pool: FleetProvider }) {
  if (chats === undefined) return <>–</>;
  const share = chats.failed / chats.ended;
  return (
    <>
      <strong class={share > 0.1 ? 'bad' : share > 0.01 ? 'warn' : ''}>{formatShare(share)}</strong>
      <span class="soft"> of {formatNumber(chats.ended)}</span>
    </>
  );
}

export function formatP95({ workers }: FleetProvider): string {
  const p95Ms = p95Of(workers);
  return p95Ms === undefined ? '–' : formatDuration(p95Ms);
}
