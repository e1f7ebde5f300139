import type { FleetWorker } from '../../shared/contracts/fleet-contract.ts';
import { Age } from '../parts/connection.tsx';
import { formatDuration, formatShare, formatTime } from '../parts/format.ts';
import { Table } from '../parts/paged-table.tsx';
import { describeBreaker, describeWorker, toneOfBreaker } from './describe.ts';
import { Badge } from './pool-badge.tsx';

/** Every worker of a provider, one a row. */
export function WorkerTable({ workers }: { workers: readonly FleetWorker[] }) {
  if (workers.length === 0) return <p class="soft">No worker has reported yet.</p>;
  return (
    <Table
      label="Table of workers"
      titles={[
        'Worker',
        'State',
        ['Jobs', 'number'],
        'Last minute',
        'Last error',
        'Breakers',
        ['Settings', 'number'],
      ]}
    >
      {workers.map((worker) => (
        <Row key={worker.worker} worker={worker} />
      ))}
    </Table>
  );
}

function Row({ worker }: { worker: FleetWorker }) {
  const { host, release, silentSince, inFlight, concurrency, oldestJobSince, lastError, breakers } = worker;
  return (
    <tr class={silentSince && 'stale'}>
      <td>
        {host ?? worker.worker}
        <br />
        <span class="soft">
          {release && `release ${release}, `}
          {/* Its end tells apart the processes of a host. */}
          <span title={worker.worker}>{worker.worker.slice(-8)}</span>
        </span>
      </td>
      <td>
        <Badge {...describeWorker(worker)} />
        {silentSince && (
          <span class="soft">
            {' '}
            for <Age since={silentSince} />
          </span>
        )}
      </td>
      <td class="number">
        {inFlight} / {concurrency}
        {oldestJobSince && (
          <div class="soft">
            oldest <Age since={oldestJobSince} />
          </div>
        )}
      </td>
      <td>
        <Calls worker={worker} />
      </td>
      <td>
        {lastError && (
          <>
            {lastError.code.replaceAll('_', ' ')}
            <div class="soft">
              <Age since={lastError.at} /> ago
            </div>
          </>
        )}
      </td>
      <td>
        {breakers.map((breaker) => (
          <div key={`${breaker.model} ${breaker.state} ${breaker.user}`}>
            {breaker.model ?? 'account'}:{' '}
            <span class={toneOfBreaker(breaker)} title={breaker.user}>
              {describeBreaker(breaker)}
            </span>
            {breaker.nextProbeAt && <div class="soft">next probe {formatTime(breaker.nextProbeAt)}</div>}
            {breaker.state === 'half-open' && breaker.since && (
              <div class="soft">
                no call for <Age since={breaker.since} />
              </div>
            )}
          </div>
        ))}
        {breakers.length === 0 && <span class="soft">closed</span>}
      </td>
      <td class="number">{worker.settingsVersion}</td>
    </tr>
  );
}

function Calls({ worker: { calls } }: { worker: FleetWorker }) {
  if (calls === undefined || calls.count === 0) return <span class="soft">no calls</span>;
  const { count, errorRate, rateLimitRate, latencyMs } = calls;
  return (
    <>
      {count} calls
      <div class="soft">
        {formatShare(errorRate)} errors, {formatShare(rateLimitRate)} 429
      </div>
      {latencyMs && (
        <div class="soft">
          p50 {formatDuration(latencyMs.p50)}, p95 {formatDuration(latencyMs.p95)}
        </div>
      )}
    </>
  );
}
