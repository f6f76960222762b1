-- This file belongs to mot_ext/src/ddl and mot_ext/src/pg/text.rs: names, texts and messages in databases of other encodings than UTF-8.
-- In each of them the statements of encodings/twins.sql run on memory-optimized tables and on their ordinary twins; what both give, rows or
-- code of the error, is shown once if it is the same.
SET client_min_messages = warning;
SELECT current_database() AS here \gset
\getenv top PG_ABS_SRCDIR
\set twins :top '/sql/encodings/twins.sql'
\set started :ECHO
\set texts off
-- A character is one byte.
CREATE DATABASE mot_regress_latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
\c mot_regress_latin1
\encoding UTF8
SELECT 'ä' AS a, 'ö' AS b \gset
\i :twins
\set ECHO :started
-- The first thing that showed it.
CREATE FOREIGN TABLE t ("ä" int, "ö" int, PRIMARY KEY ("ö")) SERVER mot;
INSERT INTO t VALUES (1, 7), (1, 8);
CREATE DATABASE mot_regress_win1251 ENCODING 'WIN1251' LOCALE 'C' TEMPLATE template0;
\c mot_regress_win1251
\encoding UTF8
SELECT 'ж' AS a, 'ё' AS b \gset
\i :twins
\set ECHO :started
-- Several.
CREATE DATABASE mot_regress_euc_jp ENCODING 'EUC_JP' LOCALE 'C' TEMPLATE template0;
\c mot_regress_euc_jp
\encoding UTF8
SELECT '日' AS a, '本' AS b \gset
\i :twins
\set ECHO :started
-- Any bytes, and what is not UTF-8 among them.
CREATE DATABASE mot_regress_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0;
\c mot_regress_ascii
\encoding SQL_ASCII
SELECT convert_from('\xe4', 'SQL_ASCII') AS a, convert_from('\xf6', 'SQL_ASCII') AS b \gset
\i :twins
\set ECHO :started
-- Characters that stand for other bytes within the library.
CREATE DATABASE mot_regress_utf8 ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0;
\c mot_regress_utf8
\encoding UTF8
SELECT U&'\+10FFE4' AS a, U&'\+10FFC3' AS b \gset
\i :twins
\set ECHO :started
\c :here
DROP DATABASE mot_regress_latin1;
DROP DATABASE mot_regress_win1251;
DROP DATABASE mot_regress_euc_jp;
DROP DATABASE mot_regress_ascii;
DROP DATABASE mot_regress_utf8;
