import { ApiError } from '../api.ts';

/** Why something did not work: the server's words, each place that is wrong, and the id for its operators. */
export function ErrorNotice({ error }: { error: unknown }) {
  if (error === undefined) return null;
  const problem = error instanceof ApiError ? error.problem : undefined;
  return (
    <div class="notice bad" role="alert">
      <p>{error instanceof Error ? error.message : String(error)}</p>
      {problem?.errors && (
        <ul>
          {problem.errors.map(({ pointer, detail }) => (
            <li key={pointer}>
              <code>{pointer}</code> {detail}
            </li>
          ))}
        </ul>
      )}
      {problem?.requestId && <p class="soft">Request {problem.requestId}</p>}
    </div>
  );
}
