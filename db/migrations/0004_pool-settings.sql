SET LOCAL lock_timeout = '2s';--> statement-breakpoint
CREATE TABLE "pool_setting" (
	"provider" text PRIMARY KEY NOT NULL,
	"version" integer NOT NULL,
	"overrides" jsonb NOT NULL,
	"changed_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"changed_by" text NOT NULL
);
--> statement-breakpoint
ALTER TABLE "audit" ADD COLUMN "before" jsonb;--> statement-breakpoint
ALTER TABLE "audit" ADD COLUMN "after" jsonb;
