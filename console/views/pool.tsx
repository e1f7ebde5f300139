import { useState } from 'preact/hooks';
import type { FleetProvider } from '../../shared/contracts/fleet-contract.ts';
import { ChangeState } from '../pools/change-state.tsx';
import { ChoiceControl } from '../pools/choice-control.tsx';
import { ConcurrencyControl } from '../pools/concurrency-control.tsx';
import { describeIntake, nameOf } from '../pools/describe.ts';
import { FieldControl } from '../pools/field-control.tsx';
import { JobTable } from '../pools/job-table.tsx';
import { PoolBadges } from '../pools/pool-badge.tsx';
import { PoolCharts } from '../pools/pool-charts.tsx';
import { PoolNumbers } from '../pools/pool-numbers.tsx';
import { PoolTroubles } from '../pools/pool-troubles.tsx';
import { settingFields } from '../pools/setting-fields.ts';
import { type PoolSettingsEditor, useSettings } from '../pools/settings.ts';
import { WorkerTable } from '../pools/worker-table.tsx';
import { isStale } from '../store.ts';

/** Everything about one provider: numbers, charts, jobs, workers, and last its settings. */
export function PoolView({ pool, query }: { pool: FleetProvider; query: URLSearchParams }) {
  const editor = useSettings(pool);
  const chosen = query.get('jobs');
  // A change that failed outlives the view.
  const [isOpen] = useState(() => editor.failed.peek() !== undefined);
  return (
    <>
      <p class="soft">
        <a href="#/pools">All pools</a>
      </p>
      <div class="row card-head">
        <h1>{nameOf(pool.provider)}</h1>
        <PoolBadges pool={pool} editor={editor} />
      </div>
      <div class={isStale.value ? 'stale' : ''}>
        <PoolTroubles pool={pool} />
        <PoolNumbers pool={pool} editor={editor} />
      </div>
      <PoolCharts provider={pool.provider} />
      <section aria-labelledby="jobs">
        <h2 id="jobs">Jobs</h2>
        <JobTable key={chosen} provider={pool.provider} chosen={chosen} />
      </section>
      <section aria-labelledby="workers">
        <h2 id="workers">Workers</h2>
        <WorkerTable workers={pool.workers} />
      </section>
      <details open={isOpen}>
        <summary>
          <h2>Settings</h2>
        </summary>
        <p class="soft">
          Each change applies to every worker at once, without a restart; running calls continue.
        </p>
        <ChangeState editor={editor} />
        <div class="settings">
          <ConcurrencyControl editor={editor} />
          <ChoiceControl editor={editor} name="intake" note={(intake) => describeIntake(intake, pool)} />
          <ChoiceControl editor={editor} name="breaker" />
          {settingFields.map((field) => (
            <FieldControl key={field.name} editor={editor} field={field} />
          ))}
        </div>
        <ResetAll editor={editor} />
      </details>
    </>
  );
}

function ResetAll({ editor }: { editor: PoolSettingsEditor }) {
  const set = editor.known.value?.settings.filter(({ source }) => source === 'override') ?? [];
  if (set.length === 0) return null;
  const everything = Object.fromEntries(set.map(({ name }) => [name, null]));
  return (
    <button type="button" class="danger" onClick={() => void editor.change(everything)}>
      Reset {set.length === 1 ? '1 setting' : `${set.length} settings`} to the environment's values
    </button>
  );
}
