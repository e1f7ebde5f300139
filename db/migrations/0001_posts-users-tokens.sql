CREATE TABLE "post_sources" (
	"post_id" uuid PRIMARY KEY NOT NULL,
	"version" integer NOT NULL,
	"path" text NOT NULL,
	"head" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "posts" (
	"id" uuid PRIMARY KEY NOT NULL,
	"title" text,
	"content" text NOT NULL,
	"author" text NOT NULL,
	"tags" text[] NOT NULL,
	"slug" text NOT NULL,
	"status" text NOT NULL,
	"published_at" timestamp (3) with time zone,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"sorted_at" timestamp (3) with time zone GENERATED ALWAYS AS (coalesce(published_at, created_at)) STORED NOT NULL,
	"search" "tsvector" GENERATED ALWAYS AS (post_search_vector(title, content)) STORED NOT NULL,
	"idempotency_owner" text,
	"idempotency_key" text,
	"idempotency_hash" "bytea"
);
--> statement-breakpoint
CREATE TABLE "tokens" (
	"id" uuid PRIMARY KEY NOT NULL,
	"secret_hash" "bytea" NOT NULL,
	"owner" text NOT NULL,
	"scopes" text[] NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp (3) with time zone,
	"last_used_at" timestamp (3) with time zone,
	"revoked_at" timestamp (3) with time zone,
	CONSTRAINT "tokens_secret_hash" UNIQUE("secret_hash")
);
--> statement-breakpoint
CREATE TABLE "users" (
	"name" text PRIMARY KEY NOT NULL,
	"secret_hash" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "post_sources" ADD CONSTRAINT "post_sources_post_id_posts_id_fk" FOREIGN KEY ("post_id") REFERENCES "posts"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "posts_slug" ON "posts" USING btree ("slug");--> statement-breakpoint
CREATE UNIQUE INDEX "posts_idempotency" ON "posts" USING btree ("idempotency_owner","idempotency_key") WHERE idempotency_key is not null;--> statement-breakpoint
CREATE INDEX "posts_published_newest" ON "posts" USING btree ("sorted_at","id") WHERE status = 'published';--> statement-breakpoint
CREATE INDEX "posts_newest" ON "posts" USING btree ("sorted_at","id");--> statement-breakpoint
CREATE INDEX "posts_author_newest" ON "posts" USING btree ("author","sorted_at","id");--> statement-breakpoint
CREATE INDEX "posts_tags" ON "posts" USING gin ("tags");--> statement-breakpoint
CREATE INDEX "posts_search" ON "posts" USING gin ("search");