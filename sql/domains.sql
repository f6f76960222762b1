-- ALTER DOMAIN judges what is new, and that alone, over the values as they are: the same on heap tables and on memory-optimized ones.
CREATE FUNCTION pg_temp.both(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE kind text; answer text; heap text; message text; "column" text;
BEGIN
  FOREACH kind IN ARRAY ARRAY['heap', 'mot'] LOOP
    BEGIN
      EXECUTE replace(command, 'KIND', kind);
      answer := 'done';
    EXCEPTION WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, "column" = COLUMN_NAME;
      answer := format('%s %s (%s)', SQLSTATE, replace(message, kind, 'KIND'), "column");
    END;
    IF kind = 'heap' THEN
      heap := answer;
    END IF;
  END LOOP;
  RETURN CASE WHEN answer = heap THEN answer ELSE format('heap: %s, MOT: %s', heap, answer) END;
END $$;
SELECT pg_temp.both(command) FROM unnest(ARRAY[
  'CREATE DOMAIN code_KIND AS char(5)',
  'CREATE DOMAIN any_code_KIND AS bpchar',
  'CREATE DOMAIN inner_code_KIND AS code_KIND',
  'CREATE DOMAIN bits_KIND AS bit(4)',
  'CREATE DOMAIN price_KIND AS numeric(5, 2)',
  'CREATE DOMAIN day_KIND AS timestamp(0)',
  'CREATE DOMAIN word_KIND AS text COLLATE "C"',
  'CREATE DOMAIN list_KIND AS int[]',
  'CREATE DOMAIN number_KIND AS int']) command;
CREATE TABLE do_heap (id int PRIMARY KEY, code code_heap, any_code any_code_heap, inner_code inner_code_heap, bits bits_heap, price price_heap,
  day day_heap, word word_heap, list list_heap, number number_heap);
CREATE FOREIGN TABLE do_mot (id int PRIMARY KEY, code code_mot, any_code any_code_mot, inner_code inner_code_mot, bits bits_mot, price price_mot,
  day day_mot, word word_mot, list list_mot, number number_mot) SERVER mot;
SELECT pg_temp.both($$INSERT INTO do_KIND VALUES
  (1, 'abcde', 'lmnop', 'fghij', '1010', 123.45, '2024-01-01 00:00:01', 'Word', '{1,2}', 1),
  (2, 'abcde', 'lmnop', 'fghij', '1010', 123.45, '2024-01-01 00:00:01', 'Word', '{1,2}', 10)$$);
SELECT command, pg_temp.both(command) FROM unnest(ARRAY[
  -- Types whose name without a length is one of a length of 1.
  'ALTER DOMAIN code_KIND ADD CONSTRAINT short CHECK (length(VALUE) < 3)',
  'ALTER DOMAIN code_KIND ADD CONSTRAINT not_a CHECK (VALUE <> ''a'')',
  'ALTER DOMAIN code_KIND ADD CONSTRAINT long CHECK (length(VALUE) = 5)',
  'ALTER DOMAIN inner_code_KIND ADD CHECK (VALUE = ''fghij'')',
  'ALTER DOMAIN any_code_KIND ADD CONSTRAINT l CHECK (VALUE = ''l'')',
  'ALTER DOMAIN any_code_KIND ADD CONSTRAINT l CHECK (VALUE = ''lmnop'')',
  'ALTER DOMAIN bits_KIND ADD CONSTRAINT bits CHECK (length(VALUE) = 1)',
  'ALTER DOMAIN bits_KIND ADD CONSTRAINT bits CHECK (length(VALUE) = 4)',
  'ALTER DOMAIN price_KIND ADD CHECK (VALUE = 123.45)',
  'ALTER DOMAIN day_KIND ADD CHECK (VALUE = ''2024-01-01 00:00:01'')',
  'ALTER DOMAIN word_KIND ADD CHECK (VALUE ~ ''^W'' AND VALUE NOT IN (''value'', ''VALUE''))',
  'ALTER DOMAIN list_KIND ADD CHECK (VALUE[2] = 2 AND array_length(VALUE, 1) = 2)',
  -- A constraint that rows break and nobody has validated stands in no other one's way.
  'ALTER DOMAIN number_KIND ADD CONSTRAINT large CHECK (VALUE > 5) NOT VALID',
  'ALTER DOMAIN number_KIND ADD CONSTRAINT positive CHECK (VALUE > 0)',
  'ALTER DOMAIN number_KIND ADD CONSTRAINT later CHECK (VALUE < 100) NOT VALID',
  'ALTER DOMAIN number_KIND VALIDATE CONSTRAINT later',
  'ALTER DOMAIN number_KIND SET NOT NULL',
  'ALTER DOMAIN number_KIND VALIDATE CONSTRAINT large',
  'UPDATE do_KIND SET number = 6 WHERE number = 1',
  'ALTER DOMAIN number_KIND VALIDATE CONSTRAINT large',
  'ALTER DOMAIN number_KIND VALIDATE CONSTRAINT large',
  'ALTER DOMAIN number_KIND DROP NOT NULL',
  'UPDATE do_KIND SET number = NULL WHERE id = 1',
  'ALTER DOMAIN number_KIND SET NOT NULL',
  'ALTER DOMAIN number_KIND ADD CONSTRAINT known CHECK (VALUE IS NOT NULL) NOT VALID',
  'ALTER DOMAIN number_KIND VALIDATE CONSTRAINT known',
  'DELETE FROM do_KIND WHERE id = 1',
  'ALTER DOMAIN number_KIND VALIDATE CONSTRAINT known',
  'UPDATE do_KIND SET number = 5']) WITH ORDINALITY AS c(command, n) ORDER BY n;
DROP TABLE do_heap;
DROP FOREIGN TABLE do_mot;
DROP DOMAIN inner_code_heap, inner_code_mot, code_heap, code_mot, any_code_heap, any_code_mot, bits_heap, bits_mot, price_heap, price_mot, day_heap, day_mot,
  word_heap, word_mot, list_heap, list_mot, number_heap, number_mot;
-- Values inside of others are not judged: the change is refused, as for heap tables.
\set VERBOSITY sqlstate
CREATE DOMAIN inside AS int;
CREATE TYPE inside_pair AS (a inside, b text);
CREATE FOREIGN TABLE do_list (v inside[]) SERVER mot;
INSERT INTO do_list VALUES ('{-1}');
ALTER DOMAIN inside ADD CHECK (VALUE > 0);
ALTER DOMAIN inside SET NOT NULL;
ALTER DOMAIN inside ADD CONSTRAINT later CHECK (VALUE > 0) NOT VALID;
ALTER DOMAIN inside VALIDATE CONSTRAINT later;
ALTER DOMAIN inside DROP CONSTRAINT later;
DROP FOREIGN TABLE do_list;
CREATE FOREIGN TABLE do_pair (v inside_pair) SERVER mot;
INSERT INTO do_pair VALUES ('(-1,x)');
ALTER DOMAIN inside ADD CHECK (VALUE > 0);
ALTER FOREIGN TABLE do_pair DROP COLUMN v;
ALTER DOMAIN inside ADD CHECK (VALUE > 0);
\set VERBOSITY default
DROP FOREIGN TABLE do_pair;
DROP TYPE inside_pair;
DROP DOMAIN inside;
