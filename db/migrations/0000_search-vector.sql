-- What the full-text search of posts looks at. A vector has an upper size, which some long texts exceed: of those it
-- holds the beginning.
CREATE FUNCTION post_search_vector(title text, content text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN setweight(to_tsvector('pg_catalog.english', coalesce(title, '')), 'A')
    || setweight(to_tsvector('pg_catalog.english', content), 'B');
EXCEPTION WHEN program_limit_exceeded THEN
  RETURN setweight(to_tsvector('pg_catalog.english', coalesce(title, '')), 'A')
    || setweight(to_tsvector('pg_catalog.english', left(content, 50000)), 'B');
END
$$;
