import type { FleetProvider } from '../../shared/contracts/fleet-contract.ts';
import type { RequestPage } from '../../shared/contracts/ledger.ts';
import { useAnswer } from '../parts/answer.ts';
import { Sparkline } from '../parts/chart.tsx';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { ErrorNotice } from '../parts/field.tsx';
import { Table } from '../parts/paged-table.tsx';
import { FailedChange } from '../pools/change-state.tsx';
import { describePause, failingFirst, nameOf } from '../pools/describe.ts';
import { PoolBadges } from '../pools/pool-badge.tsx';
import { Failed, formatP95, Load, Waiting } from '../pools/pool-numbers.tsx';
import { PoolTroubles } from '../pools/pool-troubles.tsx';
import { loadOf, useSamples } from '../pools/samples.ts';
import { editorOf, type PoolSettingsEditor, useSettings } from '../pools/settings.ts';
import { RequestRow, requestTitles } from '../requests/request-table.tsx';
import type { ViewProps } from '../router.ts';
import { fleet, isStale } from '../store.ts';
import { PoolView } from './pool.tsx';

const rereadMs = 5000;

/** The board of all providers, or at `#/pools/openai` everything about one. */
export function PoolsView({ args: [provider], query }: ViewProps) {
  const providers = fleet.value?.providers;
  if (providers === undefined) return <h1>Pools</h1>;
  const chosen = providers.find((one) => one.provider === provider);
  if (chosen) return <PoolView key={chosen.provider} pool={chosen} query={query} />;
  return (
    <>
      <h1>Pools</h1>
      <div class={isStale.value ? 'stale' : ''}>
        <Table
          label="Table of pools"
          titles={[
            'Pool',
            'State',
            'In flight',
            ...['Waiting', 'Failed, 5 min', 'p95, 1 min'].map((title) => [title, 'number'] as const),
            'Load, 10 min',
            'Intake',
          ]}
        >
          {failingFirst(providers).map((pool) => (
            <PoolRow key={pool.provider} pool={pool} />
          ))}
        </Table>
        {providers.map(({ provider: one }) => (
          <FailedChange key={one} editor={editorOf(one)} />
        ))}
      </div>
      <LastFailures />
    </>
  );
}

function PoolRow({ pool }: { pool: FleetProvider }) {
  const editor = useSettings(pool);
  const { samples } = useSamples(pool.provider);
  return (
    <tr class={pool.failing && 'failing'}>
      <th scope="row">
        <a href={`#/pools/${pool.provider}`}>{nameOf(pool.provider)}</a>
      </th>
      <td>
        <PoolBadges pool={pool} editor={editor} />
        <PoolTroubles pool={pool} isShort />
      </td>
      <td>
        <Load pool={pool} editor={editor} />
      </td>
      <td class="number">
        <a href={`#/pools/${pool.provider}?jobs=waiting`}>
          <Waiting pool={pool} />
        </a>
      </td>
      <td class="number failed">
        <Failed pool={pool} />
      </td>
      <td class="number">{formatP95(pool)}</td>
      <td>
        <Sparkline values={loadOf(samples)} max={pool.concurrency} />
      </td>
      <td>
        <Intake pool={pool} editor={editor} />
      </td>
    </tr>
  );
}

/** Pauses a pool that is open, after a question, and opens the others. */
function Intake({ pool, editor }: { pool: FleetProvider; editor: PoolSettingsEditor }) {
  const intake = editor.find('intake');
  if (intake === undefined) return null;
  const name = nameOf(pool.provider);
  if (intake.value !== null)
    return (
      <button type="button" aria-label={`Open ${name}`} onClick={() => void editor.change({ intake: null })}>
        Open
      </button>
    );
  return (
    <ConfirmButton
      label="Pause"
      of={name}
      question={`Pause ${name}? ${describePause(pool)}`}
      onConfirm={() => editor.change({ intake: 'paused' })}
    />
  );
}

/** The last ten requests that failed, at any provider. */
function LastFailures() {
  const { value, error } = useAnswer<RequestPage>('/admin/requests?result=failed&limit=10', rereadMs);
  return (
    <section aria-labelledby="failures">
      <h2 id="failures">Last failed requests</h2>
      <ErrorNotice error={value ? undefined : error} />
      {value?.data.length === 0 && <p class="soft">No request has failed.</p>}
      {value && value.data.length > 0 && (
        <Table label="Table of failed requests" class="requests" titles={requestTitles}>
          {value.data.map((request) => (
            <RequestRow key={request.id} request={request} />
          ))}
        </Table>
      )}
    </section>
  );
}
