import { useId, useState } from 'preact/hooks';
import type { ProviderId } from '../../shared/contract.ts';
import type { PoolJob, PoolJobState } from '../../shared/fleet-contract.ts';
import { formatTime } from '../parts/format.ts';
import { ListState } from '../parts/list-state.tsx';
import { addressOf, usePagedList } from '../parts/paged-list.ts';
import { Table } from '../parts/table.tsx';

const states: readonly PoolJobState[] = ['active', 'waiting', 'delayed', 'failed', 'completed'];

/** The jobs of a provider's queue, as they were when they were read, page by page. */
export function JobTable({ provider }: { provider: ProviderId }) {
  const id = useId();
  const [state, setState] = useState<PoolJobState>('active');
  const path = `/admin/pools/${provider}/jobs`;
  const list = usePagedList<PoolJob>(
    (offset) => addressOf(path, { state, offset, limit: '20' }),
    [path, state],
  );
  // Jobs go on between two pages, so the next one may repeat some.
  const jobs = [...new Map(list.rows.value?.map((job) => [job.id, job])).values()];
  return (
    <>
      <p class="row">
        <label for={id}>State</label>
        <select
          id={id}
          value={state}
          onChange={({ currentTarget }) => setState(currentTarget.value as PoolJobState)}
        >
          {states.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <button type="button" onClick={() => void list.load()}>
          Read again
        </button>
      </p>
      {jobs.length > 0 && (
        <Table
          label="Table of jobs"
          titles={['Id', 'State', 'Added', 'Started', 'Ended', ['Attempts', 'number']]}
        >
          {jobs.map((job) => (
            <tr key={job.id}>
              <td>
                <code class="id">{job.id}</code>
              </td>
              <td>{job.state}</td>
              {[job.addedAt, job.startedAt, job.endedAt].map((at, column) => (
                <td key={column}>{at ? <time dateTime={at}>{formatTime(at)}</time> : '–'}</td>
              ))}
              <td class="number">{job.attempts}</td>
            </tr>
          ))}
        </Table>
      )}
      <ListState list={list} empty="The queue has no such job." more="More jobs" />
    </>
  );
}
