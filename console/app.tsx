import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ConnectionBanner, ConnectionState } from './parts/connection.tsx';
import { ErrorNotice } from './parts/field.tsx';
import { formatTime } from './parts/format.ts';
import { place, type ViewProps } from './router.ts';
import { session } from './session/session.ts';
import { signOut } from './session/sign-in.ts';
import { followFleet } from './store.ts';
import { AuditView } from './views/audit.tsx';
import { PlaygroundView } from './views/playground.tsx';
import { PoolsView } from './views/pools.tsx';
import { PostsView } from './views/posts.tsx';
import { RequestsView } from './views/requests.tsx';
import { SignInView } from './views/sign-in.tsx';
import { TokensView } from './views/tokens.tsx';
import { UsageView } from './views/usage.tsx';
import { UsersView } from './views/users.tsx';

/** The whole page: who is not signed in sees the form, and afterwards the view of the address. */
export function App() {
  if (session.value === undefined)
    return (
      <main class="narrow" id="main">
        <p role="status">Loading…</p>
      </main>
    );
  return session.value === null ? <SignInView /> : <Console />;
}

function Console() {
  useEffect(followFleet, []);
  const { view, args, query } = place.value;
  const route = routes.find((one) => one.view === view) ?? routes[0];
  const main = useRef<HTMLElement>(null);
  const address = [view, ...args].join('/');
  useAnnouncedView(address, route?.title ?? '', main);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header class="row top">
        <a class="brand" href="#/pools">
          Quillgate
        </a>
        <Navigation current={route?.view} />
        <ConnectionState />
        <UserMenu />
      </header>
      <ConnectionBanner />
      <main id="main" tabIndex={-1} ref={main}>
        {route && <route.component key={route.view} args={args} query={query} />}
      </main>
      <footer class="foot soft">All times are in UTC.</footer>
    </>
  );
}

function Navigation({ current }: { current: string | undefined }) {
  return (
    <nav aria-label="Console">
      <ul class="row">
        {routes.map(({ view, title }) => (
          <li key={view}>
            <a href={`#/${view}`} aria-current={view === current ? 'page' : undefined}>
              {title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** The name of the operator, and the ways out. */
function UserMenu() {
  const [error, setError] = useState<unknown>();
  const { user, expiresAt } = session.value ?? {};
  if (!user) return null;
  const leave = (everywhere: boolean) => signOut({ everywhere }).catch(setError);
  return (
    <details class="menu">
      <summary aria-label={`Signed in as ${user.name}`}>{user.name}</summary>
      <div class="menu-content">
        <p class="soft">Signed in{expiresAt && ` until ${formatTime(expiresAt)}`}</p>
        <button type="button" onClick={() => void leave(false)}>
          Sign out
        </button>
        <button type="button" onClick={() => void leave(true)}>
          Sign out everywhere
        </button>
        <ErrorNotice error={error} />
      </div>
    </details>
  );
}

/** Names the window after the view, and moves the focus there when another one is chosen, as a page load would. */
function useAnnouncedView(address: string, title: string, main: { current: HTMLElement | null }): void {
  const before = useRef(address);
  useEffect(() => {
    document.title = `${title} · Quillgate console`;
    if (before.current === address) return;
    before.current = address;
    main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [address, title, main]);
}

interface Route {
  /** First part of the fragment. */
  readonly view: string;
  readonly title: string;
  readonly component: ComponentType<ViewProps>;
}

/**
 * Every view, in the order of the navigation; the first is shown where the fragment names none. To add one: a component
 * in `views/NAME.tsx` that begins with an `<h1>`, and a line here.
 */
export const routes: readonly Route[] = [
  { view: 'pools', title: 'Pools', component: PoolsView },
  { view: 'requests', title: 'Requests', component: RequestsView },
  { view: 'usage', title: 'Usage', component: UsageView },
  { view: 'playground', title: 'Playground', component: PlaygroundView },
  { view: 'posts', title: 'Posts', component: PostsView },
  { view: 'users', title: 'Users', component: UsersView },
  { view: 'tokens', title: 'Tokens', component: TokensView },
  { view: 'audit', title: 'Audit', component: AuditView },
];
