CREATE TABLE "session" (
	"digest" "bytea" PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"user_name" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	"secret_hash" "bytea"
);
--> statement-breakpoint
CREATE INDEX "session_expiry" ON "session" USING btree ("expires_at");