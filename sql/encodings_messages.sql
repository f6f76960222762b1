-- This file belongs to mot_ext/src/pg: what errors and notices say in databases of other encodings than UTF-8. As encodings.sql, with all the texts and
-- names of an error.
SET client_min_messages = warning;
SELECT current_database() AS here \gset
\getenv top PG_ABS_SRCDIR
\set twins :top '/sql/encodings/twins.sql'
\set started :ECHO
\set texts on
CREATE DATABASE mot_regress_latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
\c mot_regress_latin1
\encoding UTF8
SELECT 'ä' AS a, 'ö' AS b \gset
\i :twins
\set ECHO :started
SET search_path = "ä mot";
SET client_min_messages = notice;
CREATE UNIQUE INDEX "ä2" ON u ("ä");
ALTER TABLE u ADD CONSTRAINT "ö2" UNIQUE USING INDEX "ä2";
RESET client_min_messages;
INSERT INTO "äö" VALUES (3, 'ä', 3);
CREATE DATABASE mot_regress_euc_jp ENCODING 'EUC_JP' LOCALE 'C' TEMPLATE template0;
\c mot_regress_euc_jp
\encoding UTF8
SELECT '日' AS a, '本' AS b \gset
\i :twins
\set ECHO :started
CREATE DATABASE mot_regress_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0;
\c mot_regress_ascii
\encoding SQL_ASCII
SELECT convert_from('\xe4', 'SQL_ASCII') AS a, convert_from('\xf6', 'SQL_ASCII') AS b \gset
\i :twins
\set ECHO :started
\c :here
DROP DATABASE mot_regress_latin1;
DROP DATABASE mot_regress_euc_jp;
DROP DATABASE mot_regress_ascii;
