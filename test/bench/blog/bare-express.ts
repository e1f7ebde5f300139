import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import postgres from 'postgres';
import { v7 as uuidv7 } from 'uuid';

// The program that the blog is measured beside: Express and postgres.js with their defaults, on the database of
// DATABASE_URL. It answers with the same columns and the same JSON, and checks nothing.
const sql = postgres(process.env.DATABASE_URL ?? '', { onnotice: () => undefined });

const columns = sql`id, title, content, author, tags, slug, status, published_at as "publishedAt",
  created_at as "createdAt", updated_at as "updatedAt", version`;

const app = express();
app.get('/blogs/:id', async ({ params: { id } }, response) => {
  const [post] = await sql`select ${columns} from posts where id = ${id} and status = 'published'`;
  response.json(post);
});
app.get('/blogs', async ({ query: { limit } }, response) => {
  const posts = await sql`select ${columns} from posts where status = 'published'
    order by sorted_at desc, id desc limit ${Number(limit)}`;
  response.json(posts);
});
app.post('/blogs', express.json(), async ({ body: { title, content, tags } }, response) => {
  const slug = String(title).toLowerCase().replaceAll(' ', '-');
  const [post] = await sql`insert into posts (id, title, content, author, tags, slug, status, published_at)
    values (${uuidv7()}, ${title}, ${content}, 'Bench', ${tags}, ${slug}, 'published', now()) returning ${columns}`;
  response.status(201).json(post);
});

const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.({ type: 'listening', port: (server.address() as AddressInfo).port });
for (const end of ['SIGTERM', 'disconnect']) process.once(end, () => process.exit());
