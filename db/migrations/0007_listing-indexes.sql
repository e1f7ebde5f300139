CREATE INDEX "audit_newest" ON "audit" USING btree ("at","id");--> statement-breakpoint
CREATE INDEX "posts_drafts_newest" ON "posts" USING btree ("sorted_at","id") WHERE status = 'draft';