import type { ComponentType } from 'preact';
import type { ViewProps } from './router.ts';
import { AuditView } from './views/audit.tsx';
import { PlaygroundView } from './views/playground.tsx';
import { PoolsView } from './views/pools.tsx';
import { PostsView } from './views/posts.tsx';
import { RequestsView } from './views/requests.tsx';
import { TokensView } from './views/tokens.tsx';
import { UsersView } from './views/users.tsx';

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
  { view: 'playground', title: 'Playground', component: PlaygroundView },
  { view: 'posts', title: 'Posts', component: PostsView },
  { view: 'users', title: 'Users', component: UsersView },
  { view: 'tokens', title: 'Tokens', component: TokensView },
  { view: 'audit', title: 'Audit', component: AuditView },
];
