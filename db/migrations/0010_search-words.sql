-- To PostgreSQL's parser two words with a slash between them are one, a file's name, and a number behind a hyphen is
-- negative. So the text is read twice, as it is and with blanks in these places: whatever was found before is found as
-- well. Letters are composed, as those of queries are; only a server with UTF8 can do that.
--
-- Posts that are there keep their vectors until title or content changes: docs/blog.md has a statement for all.
CREATE OR REPLACE FUNCTION post_search_vector(title text, content text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  seam text := '(?<![<:/])/(?![/>])|(?<=[[:alnum:]])-(?=[0-9])';
  heading text := coalesce(title, '');
  words text := content;
BEGIN
  IF getdatabaseencoding() = 'UTF8' THEN
    heading := normalize(heading, NFC);
    words := normalize(words, NFC);
  END IF;
  words := regexp_replace(
    replace(regexp_replace(words, '<!--.*?-->', ' ', 'g'), '<!--', ' '),
    '[^ \n\t\r"'',;=()[\]{}|!?*#$%<>]{100}', '\& ', 'g');
  RETURN setweight(to_tsvector('pg_catalog.english', heading), 'A')
    || setweight(to_tsvector('pg_catalog.english', words), 'B')
    || setweight(to_tsvector('pg_catalog.english', coalesce(nullif(regexp_replace(heading, seam, ' ', 'g'), heading), '')), 'A')
    || setweight(to_tsvector('pg_catalog.english', coalesce(nullif(regexp_replace(words, seam, ' ', 'g'), words), '')), 'B');
EXCEPTION WHEN program_limit_exceeded THEN
  RETURN setweight(to_tsvector('pg_catalog.english', heading), 'A')
    || setweight(to_tsvector('pg_catalog.english', left(words, 50000)), 'B');
END
$$;
