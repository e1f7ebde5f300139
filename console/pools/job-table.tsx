import { useEffect, useRef, useState } from 'preact/hooks';
import type { ProviderId } from '../../shared/contracts/contract.ts';
import type { PoolJob, PoolJobState } from '../../shared/contracts/fleet-contract.ts';
import { Age, TimeLeft } from '../parts/connection.tsx';
import { SelectField } from '../parts/field.tsx';
import { addressOf, PagedTable, usePagedList } from '../parts/paged-table.tsx';
import { CancelButton } from './cancel-button.tsx';

const states: readonly PoolJobState[] = ['active', 'waiting', 'delayed', 'failed', 'completed'];
const rereadMs = 2000;

/** The jobs of a provider's queue, in the order in which they will run; `chosen` is the state that a link leads to. */
export function JobTable({ provider, chosen }: { provider: ProviderId; chosen: string | null }) {
  const [state, setState] = useState(states.find((one) => one === chosen) ?? 'active');
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // After the page, which shows its top when another view comes.
    if (chosen !== null) requestAnimationFrame(() => place.current?.scrollIntoView());
  }, []);
  const path = `/admin/pools/${provider}/jobs`;
  const list = usePagedList<PoolJob>(
    (offset) => addressOf(path, { state, offset, limit: '20' }),
    [path, state],
    rereadMs,
  );
  const onError = (error: unknown) => {
    list.error.value = error;
  };
  return (
    <div ref={place}>
      <p class="row">
        <SelectField
          label="State"
          value={state}
          options={states.map((one) => [one, one])}
          onChange={({ currentTarget }) => setState(currentTarget.value as PoolJobState)}
        />
      </p>
      <PagedTable
        list={list}
        label="Table of jobs"
        titles={[
          'Id',
          'User',
          'Model',
          'API',
          ...['Age', 'Time left', 'Place', 'Attempts'].map((title) => [title, 'number'] as const),
          'Chat',
        ]}
        row={(job) => (
          <tr key={job.id}>
            <td>
              <a title={job.id} href={`#/requests/${job.id.slice(0, 36)}`}>
                {job.id.slice(0, 8) + job.id.slice(36)}
              </a>
            </td>
            <td>{job.user ?? '–'}</td>
            <td>{job.model ?? '–'}</td>
            <td>{job.api ?? '–'}</td>
            <td class="number">
              <Age since={job.addedAt} />
            </td>
            <td class="number">{job.deadline && !job.endedAt ? <TimeLeft until={job.deadline} /> : '–'}</td>
            <td class="number">{job.place ?? '–'}</td>
            <td class="number">{job.attempts}</td>
            <td class="row">
              {job.endedAt === null && (
                <CancelButton id={job.id} onDone={() => void list.refresh()} onError={onError} />
              )}
              {job.endedAt === null && job.user && (
                <a href={`#${addressOf('/users', { name: job.user })}`}>All of {job.user}: suspend</a>
              )}
            </td>
          </tr>
        )}
        empty={`No job of this pool is ${state}.`}
        more="More jobs"
      />
    </div>
  );
}
