import type { ViewProps } from '../routes.ts';
import { fleet } from '../store.ts';

/** The board of all providers. */
export function PoolsView(_props: ViewProps) {
  return (
    <>
      <h1>Pools</h1>
      <ul>
        {fleet.value?.providers.map(({ provider, state }) => (
          <li key={provider}>
            {provider}: {state}
          </li>
        ))}
      </ul>
    </>
  );
}
