-- What the full-text search of posts looks at.
--
-- PostgreSQL's parser looks ahead for the end of an address, a path, a hyphenated word or an HTML comment, and begins
-- again a little further on when it finds none: the longest post could cost it minutes. So comments are taken out, and
-- what it could look through (no blanks, none of the marks that end every such thing) is cut into pieces of 100
-- characters. An address longer than that is found by its host and its parts, not as a whole.
--
-- A vector has an upper size, which some long texts exceed: of those it holds the beginning.
--
-- All that is called here is in pg_catalog, so it works with any search_path: a restored dump's is empty.
CREATE FUNCTION post_search_vector(title text, content text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  words text := regexp_replace(
    replace(regexp_replace(content, '<!--.*?-->', ' ', 'g'), '<!--', ' '),
    '[^ \n\t\r"'',;=()[\]{}|!?*#$%<>]{100}', '\& ', 'g');
BEGIN
  RETURN setweight(to_tsvector('pg_catalog.english', coalesce(title, '')), 'A')
    || setweight(to_tsvector('pg_catalog.english', words), 'B');
EXCEPTION WHEN program_limit_exceeded THEN
  RETURN setweight(to_tsvector('pg_catalog.english', coalesce(title, '')), 'A')
    || setweight(to_tsvector('pg_catalog.english', left(words, 50000)), 'B');
END
$$;
