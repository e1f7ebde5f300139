SET LOCAL lock_timeout = '2s';
--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "id" uuid DEFAULT gen_random_uuid() NOT NULL;
--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "role" text DEFAULT 'user' NOT NULL;
--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_id" UNIQUE("id");
--> statement-breakpoint
ALTER TABLE "tokens" ADD COLUMN "user_id" uuid;
--> statement-breakpoint
-- Who owns a token that may still be used becomes a user, without a secret where there was none of that name.
INSERT INTO "users" ("name", "secret_hash", "created_at")
SELECT "owner", '', min("created_at") FROM "tokens" WHERE "revoked_at" IS NULL GROUP BY "owner"
ON CONFLICT ("name") DO NOTHING;
--> statement-breakpoint
UPDATE "tokens" SET "user_id" = "users"."id" FROM "users"
WHERE "users"."name" = "tokens"."owner" AND "tokens"."revoked_at" IS NULL;
--> statement-breakpoint
ALTER TABLE "tokens" ADD CONSTRAINT "tokens_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE set null ON UPDATE no action;
--> statement-breakpoint
-- For every release, so that tokens get their users alike, also from the one before, which knows no ids. The update changes
-- nothing: it holds on to a user who is about to be removed, or waits for the removal and makes a new one.
CREATE FUNCTION give_token_its_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.user_id IS NULL AND NEW.revoked_at IS NULL THEN
    INSERT INTO users (name, secret_hash) VALUES (NEW.owner, '')
    ON CONFLICT (name) DO UPDATE SET name = EXCLUDED.name
    RETURNING id INTO NEW.user_id;
  END IF;
  RETURN NEW;
END
$$;
--> statement-breakpoint
CREATE TRIGGER "tokens_user" BEFORE INSERT ON "tokens" FOR EACH ROW EXECUTE FUNCTION give_token_its_user();
