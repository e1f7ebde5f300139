SET LOCAL lock_timeout = '2s';
--> statement-breakpoint
CREATE TABLE "old_slugs" (
	"slug" text PRIMARY KEY NOT NULL,
	"post_id" uuid NOT NULL
);
--> statement-breakpoint
ALTER TABLE "old_slugs" ADD CONSTRAINT "old_slugs_post_id_posts_id_fk" FOREIGN KEY ("post_id") REFERENCES "posts"("id") ON DELETE cascade ON UPDATE no action;
--> statement-breakpoint
CREATE INDEX "old_slugs_post" ON "old_slugs" USING btree ("post_id");
--> statement-breakpoint
-- For every release and for imports alike. A slug is kept if readers may know it, until another published post has it.
CREATE FUNCTION keep_old_slug() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND OLD.slug <> NEW.slug AND OLD.published_at IS NOT NULL THEN
    INSERT INTO old_slugs (slug, post_id) VALUES (OLD.slug, NEW.id)
    ON CONFLICT (slug) DO UPDATE SET post_id = EXCLUDED.post_id;
  END IF;
  IF NEW.status = 'published' THEN
    DELETE FROM old_slugs WHERE slug = NEW.slug;
  END IF;
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER "posts_old_slug" AFTER INSERT OR UPDATE OF slug, status ON "posts" FOR EACH ROW EXECUTE FUNCTION keep_old_slug();
