SET LOCAL lock_timeout = '2s';
--> statement-breakpoint
CREATE INDEX "audit_newest" ON "audit" USING btree ("at","id");
