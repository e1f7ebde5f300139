SET LOCAL lock_timeout = '2s';
--> statement-breakpoint
CREATE TABLE "calls" (
	"chat" text NOT NULL,
	"attempt" integer NOT NULL,
	"added_at" timestamp (3) with time zone NOT NULL,
	"run" integer NOT NULL,
	"call" integer NOT NULL,
	"kind" text NOT NULL,
	"user_id" text NOT NULL,
	"user_name" text,
	"token_id" text,
	"api" text NOT NULL,
	"session" text,
	"provider" text NOT NULL,
	"model" text,
	"answered_model" text,
	"started_at" timestamp (3) with time zone NOT NULL,
	"ended_at" timestamp (3) with time zone NOT NULL,
	"known" text NOT NULL,
	"code" text,
	"status" integer,
	"type" text,
	"requests" integer NOT NULL,
	"input" bigint NOT NULL,
	"cached" bigint NOT NULL,
	"written" bigint NOT NULL,
	"written_for_1h" bigint NOT NULL,
	"output" bigint NOT NULL,
	"thinking" bigint NOT NULL,
	"tier" text,
	"request_id" text,
	"cost_nanos" bigint,
	"price_dated" date,
	CONSTRAINT "calls_chat_attempt_added_at_run_started_at_call_pk" PRIMARY KEY("chat","attempt","added_at","run","started_at","call")
);
--> statement-breakpoint
CREATE TABLE "requests" (
	"chat" text PRIMARY KEY NOT NULL,
	"user_id" text NOT NULL,
	"user_name" text,
	"token_id" text,
	"api" text NOT NULL,
	"console" boolean NOT NULL,
	"session" text,
	"provider" text NOT NULL,
	"model" text,
	"streamed" boolean NOT NULL,
	"stored" boolean NOT NULL,
	"added_at" timestamp (3) with time zone NOT NULL,
	"attempt" integer,
	"run" integer,
	"code" text,
	"worked_until" timestamp (3) with time zone,
	"answered_provider" text,
	"answered_model" text,
	"error_status" integer,
	"error_type" text,
	"error_place" text,
	"attempts" jsonb,
	"waited_ms" integer,
	"called_ms" integer,
	"first_token_ms" integer,
	"left_with" text,
	"left_at" timestamp (3) with time zone,
	"joins" text,
	"result" text GENERATED ALWAYS AS (coalesce(left_with, code)) STORED,
	"ended_at" timestamp (3) with time zone GENERATED ALWAYS AS (coalesce(left_at, worked_until)) STORED
);
--> statement-breakpoint
CREATE TABLE "usage_days" (
	"day" date NOT NULL,
	"user_id" text NOT NULL,
	"token_id" text NOT NULL,
	"provider" text NOT NULL,
	"model" text NOT NULL,
	"api" text NOT NULL,
	"user_name" text,
	"calls" bigint NOT NULL,
	"failed" bigint NOT NULL,
	"estimated" bigint NOT NULL,
	"lost" bigint NOT NULL,
	"unpriced" bigint NOT NULL,
	"input" bigint NOT NULL,
	"cached" bigint NOT NULL,
	"written" bigint NOT NULL,
	"written_for_1h" bigint NOT NULL,
	"output" bigint NOT NULL,
	"thinking" bigint NOT NULL,
	"cost_nanos" bigint NOT NULL,
	CONSTRAINT "usage_days_day_user_id_token_id_provider_model_api_pk" PRIMARY KEY("day","user_id","token_id","provider","model","api")
);
--> statement-breakpoint
ALTER TABLE "tokens" ADD COLUMN "name" text;--> statement-breakpoint
CREATE INDEX "calls_ended" ON "calls" USING brin ("ended_at") WITH (autosummarize=true);--> statement-breakpoint
CREATE INDEX "calls_lost" ON "calls" USING btree ("chat") WHERE known = 'lost';--> statement-breakpoint
CREATE INDEX "calls_request_id" ON "calls" USING btree ("request_id") WHERE request_id is not null;--> statement-breakpoint
CREATE INDEX "requests_newest" ON "requests" USING btree ("ended_at","chat");--> statement-breakpoint
CREATE INDEX "requests_user_newest" ON "requests" USING btree ("user_id","ended_at","chat");--> statement-breakpoint
CREATE INDEX "requests_failed_newest" ON "requests" USING btree ("ended_at","chat","user_id") WHERE result not in ('ok', 'truncated', 'blocked', 'cancelled');--> statement-breakpoint
CREATE INDEX "requests_session_newest" ON "requests" USING btree ("session","ended_at","chat") WHERE session is not null;--> statement-breakpoint
CREATE INDEX "usage_days_user" ON "usage_days" USING btree ("user_id","day");