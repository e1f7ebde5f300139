SET LOCAL lock_timeout = '2s';
--> statement-breakpoint
ALTER TABLE "post_sources" ADD COLUMN "folder" text;
