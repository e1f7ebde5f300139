import type { FleetProvider } from '../../shared/contracts/fleet-contract.ts';
import { ChangeState } from '../pools/change-state.tsx';
import { ChoiceControl } from '../pools/choice-control.tsx';
import { ConcurrencyControl } from '../pools/concurrency-control.tsx';
import { describeIntake, failingFirst, nameOf } from '../pools/describe.ts';
import { PoolBadges } from '../pools/pool-badge.tsx';
import { PoolNumbers } from '../pools/pool-numbers.tsx';
import { PoolTroubles } from '../pools/pool-troubles.tsx';
import { useSettings } from '../pools/settings.ts';
import { WorkerTable } from '../pools/worker-table.tsx';
import type { ViewProps } from '../router.ts';
import { fleet, isStale } from '../store.ts';
import { PoolView } from './pool.tsx';

/** The board of all providers, or at `#/pools/openai` everything about one. */
export function PoolsView({ args: [provider] }: ViewProps) {
  const providers = fleet.value?.providers;
  if (providers === undefined) return <h1>Pools</h1>;
  const chosen = providers.find((one) => one.provider === provider);
  if (chosen) return <PoolView key={chosen.provider} pool={chosen} />;
  return (
    <>
      <h1>Pools</h1>
      <div class={isStale.value ? 'cards stale' : 'cards'}>
        {failingFirst(providers).map((pool) => (
          <PoolCard key={pool.provider} pool={pool} />
        ))}
      </div>
    </>
  );
}

function PoolCard({ pool }: { pool: FleetProvider }) {
  const editor = useSettings(pool);
  const { length } = pool.workers;
  return (
    <section class={pool.failing ? 'card failing' : 'card'} aria-labelledby={`pool-${pool.provider}`}>
      <div class="row card-head">
        <h2 id={`pool-${pool.provider}`}>
          <a href={`#/pools/${pool.provider}`}>{nameOf(pool.provider)}</a>
        </h2>
        <PoolBadges pool={pool} editor={editor} />
      </div>
      <PoolTroubles pool={pool} />
      <PoolNumbers pool={pool} editor={editor} />
      <div class="settings">
        <ConcurrencyControl editor={editor} />
        <ChoiceControl editor={editor} name="intake" note={(intake) => describeIntake(intake, pool)} />
      </div>
      <ChangeState editor={editor} />
      <details>
        <summary>
          {length} {length === 1 ? 'worker' : 'workers'}
        </summary>
        <WorkerTable workers={pool.workers} />
      </details>
    </section>
  );
}
