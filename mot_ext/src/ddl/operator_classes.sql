-- The index access method `mot_foreign_index` and an operator class for every type that can be a key.
--
-- Indexes of memory-optimized tables are ordinary pg_index rows of this access method, so that \d, pg_dump, DROP, RENAME
-- and ON CONFLICT treat them as any other index; the memory behind them belongs to the engine and only the foreign-data
-- wrapper reads it. Strategies and the support function are btree's: 1 <, 2 <=, 3 =, 4 >=, 5 >; 1 the comparison.
-- Families hold operators of one type, except the integers, whose cross-type comparisons are exact in every width. The planner is told of btree's
-- families instead (src/fdw/relation_info.rs), which hold the comparisons of other types that an index answers.
CREATE ACCESS METHOD mot_foreign_index TYPE INDEX HANDLER mot.index_handler;
COMMENT ON ACCESS METHOD mot_foreign_index IS 'index of a memory-optimized table';


CREATE OPERATOR FAMILY mot.integer_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.int2_ops DEFAULT FOR TYPE pg_catalog.int2 USING mot_foreign_index FAMILY mot.integer_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.btint2cmp(pg_catalog.int2, pg_catalog.int2);
CREATE OPERATOR CLASS mot.int4_ops DEFAULT FOR TYPE pg_catalog.int4 USING mot_foreign_index FAMILY mot.integer_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.btint4cmp(pg_catalog.int4, pg_catalog.int4);
CREATE OPERATOR CLASS mot.int8_ops DEFAULT FOR TYPE pg_catalog.int8 USING mot_foreign_index FAMILY mot.integer_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.btint8cmp(pg_catalog.int8, pg_catalog.int8);
ALTER OPERATOR FAMILY mot.integer_ops USING mot_foreign_index ADD
  OPERATOR 1 pg_catalog.< (int2, int4), OPERATOR 2 pg_catalog.<= (int2, int4), OPERATOR 3 pg_catalog.= (int2, int4), OPERATOR 4 pg_catalog.>= (int2, int4), OPERATOR 5 pg_catalog.> (int2, int4),
  FUNCTION 1 (int2, int4) pg_catalog.btint24cmp(int2, int4),
  OPERATOR 1 pg_catalog.< (int2, int8), OPERATOR 2 pg_catalog.<= (int2, int8), OPERATOR 3 pg_catalog.= (int2, int8), OPERATOR 4 pg_catalog.>= (int2, int8), OPERATOR 5 pg_catalog.> (int2, int8),
  FUNCTION 1 (int2, int8) pg_catalog.btint28cmp(int2, int8),
  OPERATOR 1 pg_catalog.< (int4, int2), OPERATOR 2 pg_catalog.<= (int4, int2), OPERATOR 3 pg_catalog.= (int4, int2), OPERATOR 4 pg_catalog.>= (int4, int2), OPERATOR 5 pg_catalog.> (int4, int2),
  FUNCTION 1 (int4, int2) pg_catalog.btint42cmp(int4, int2),
  OPERATOR 1 pg_catalog.< (int4, int8), OPERATOR 2 pg_catalog.<= (int4, int8), OPERATOR 3 pg_catalog.= (int4, int8), OPERATOR 4 pg_catalog.>= (int4, int8), OPERATOR 5 pg_catalog.> (int4, int8),
  FUNCTION 1 (int4, int8) pg_catalog.btint48cmp(int4, int8),
  OPERATOR 1 pg_catalog.< (int8, int2), OPERATOR 2 pg_catalog.<= (int8, int2), OPERATOR 3 pg_catalog.= (int8, int2), OPERATOR 4 pg_catalog.>= (int8, int2), OPERATOR 5 pg_catalog.> (int8, int2),
  FUNCTION 1 (int8, int2) pg_catalog.btint82cmp(int8, int2),
  OPERATOR 1 pg_catalog.< (int8, int4), OPERATOR 2 pg_catalog.<= (int8, int4), OPERATOR 3 pg_catalog.= (int8, int4), OPERATOR 4 pg_catalog.>= (int8, int4), OPERATOR 5 pg_catalog.> (int8, int4),
  FUNCTION 1 (int8, int4) pg_catalog.btint84cmp(int8, int4);

CREATE OPERATOR FAMILY mot.oid_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.oid_ops DEFAULT FOR TYPE pg_catalog.oid USING mot_foreign_index FAMILY mot.oid_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.btoidcmp(pg_catalog.oid, pg_catalog.oid);

CREATE OPERATOR FAMILY mot.bool_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.bool_ops DEFAULT FOR TYPE pg_catalog.bool USING mot_foreign_index FAMILY mot.bool_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.btboolcmp(pg_catalog.bool, pg_catalog.bool);

CREATE OPERATOR FAMILY mot.float4_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.float4_ops DEFAULT FOR TYPE pg_catalog.float4 USING mot_foreign_index FAMILY mot.float4_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.btfloat4cmp(pg_catalog.float4, pg_catalog.float4);

CREATE OPERATOR FAMILY mot.float8_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.float8_ops DEFAULT FOR TYPE pg_catalog.float8 USING mot_foreign_index FAMILY mot.float8_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.btfloat8cmp(pg_catalog.float8, pg_catalog.float8);

CREATE OPERATOR FAMILY mot.numeric_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.numeric_ops DEFAULT FOR TYPE pg_catalog.numeric USING mot_foreign_index FAMILY mot.numeric_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.numeric_cmp(pg_catalog.numeric, pg_catalog.numeric);

CREATE OPERATOR FAMILY mot.date_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.date_ops DEFAULT FOR TYPE pg_catalog.date USING mot_foreign_index FAMILY mot.date_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.date_cmp(pg_catalog.date, pg_catalog.date);

CREATE OPERATOR FAMILY mot.time_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.time_ops DEFAULT FOR TYPE pg_catalog.time USING mot_foreign_index FAMILY mot.time_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.time_cmp(pg_catalog.time, pg_catalog.time);

CREATE OPERATOR FAMILY mot.timetz_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.timetz_ops DEFAULT FOR TYPE pg_catalog.timetz USING mot_foreign_index FAMILY mot.timetz_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.timetz_cmp(pg_catalog.timetz, pg_catalog.timetz);

CREATE OPERATOR FAMILY mot.timestamp_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.timestamp_ops DEFAULT FOR TYPE pg_catalog.timestamp USING mot_foreign_index FAMILY mot.timestamp_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.timestamp_cmp(pg_catalog.timestamp, pg_catalog.timestamp);

CREATE OPERATOR FAMILY mot.timestamptz_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.timestamptz_ops DEFAULT FOR TYPE pg_catalog.timestamptz USING mot_foreign_index FAMILY mot.timestamptz_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.timestamptz_cmp(pg_catalog.timestamptz, pg_catalog.timestamptz);

CREATE OPERATOR FAMILY mot.interval_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.interval_ops DEFAULT FOR TYPE pg_catalog.interval USING mot_foreign_index FAMILY mot.interval_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.interval_cmp(pg_catalog.interval, pg_catalog.interval);

CREATE OPERATOR FAMILY mot.uuid_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.uuid_ops DEFAULT FOR TYPE pg_catalog.uuid USING mot_foreign_index FAMILY mot.uuid_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.uuid_cmp(pg_catalog.uuid, pg_catalog.uuid);

CREATE OPERATOR FAMILY mot.text_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.text_ops DEFAULT FOR TYPE pg_catalog.text USING mot_foreign_index FAMILY mot.text_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.bttextcmp(pg_catalog.text, pg_catalog.text);

CREATE OPERATOR FAMILY mot.bpchar_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.bpchar_ops DEFAULT FOR TYPE pg_catalog.bpchar USING mot_foreign_index FAMILY mot.bpchar_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.bpcharcmp(pg_catalog.bpchar, pg_catalog.bpchar);

CREATE OPERATOR FAMILY mot.bytea_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.bytea_ops DEFAULT FOR TYPE pg_catalog.bytea USING mot_foreign_index FAMILY mot.bytea_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.byteacmp(pg_catalog.bytea, pg_catalog.bytea);

CREATE OPERATOR FAMILY mot.char_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.char_ops DEFAULT FOR TYPE pg_catalog."char" USING mot_foreign_index FAMILY mot.char_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.btcharcmp(pg_catalog."char", pg_catalog."char");

CREATE OPERATOR FAMILY mot.name_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.name_ops DEFAULT FOR TYPE pg_catalog.name USING mot_foreign_index FAMILY mot.name_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.btnamecmp(pg_catalog.name, pg_catalog.name);

CREATE OPERATOR FAMILY mot.money_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.money_ops DEFAULT FOR TYPE pg_catalog.money USING mot_foreign_index FAMILY mot.money_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.cash_cmp(pg_catalog.money, pg_catalog.money);

CREATE OPERATOR FAMILY mot.pg_lsn_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.pg_lsn_ops DEFAULT FOR TYPE pg_catalog.pg_lsn USING mot_foreign_index FAMILY mot.pg_lsn_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.pg_lsn_cmp(pg_catalog.pg_lsn, pg_catalog.pg_lsn);

CREATE OPERATOR FAMILY mot.xid8_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.xid8_ops DEFAULT FOR TYPE pg_catalog.xid8 USING mot_foreign_index FAMILY mot.xid8_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.xid8cmp(pg_catalog.xid8, pg_catalog.xid8);

CREATE OPERATOR FAMILY mot.macaddr_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.macaddr_ops DEFAULT FOR TYPE pg_catalog.macaddr USING mot_foreign_index FAMILY mot.macaddr_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.macaddr_cmp(pg_catalog.macaddr, pg_catalog.macaddr);

CREATE OPERATOR FAMILY mot.macaddr8_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.macaddr8_ops DEFAULT FOR TYPE pg_catalog.macaddr8 USING mot_foreign_index FAMILY mot.macaddr8_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.macaddr8_cmp(pg_catalog.macaddr8, pg_catalog.macaddr8);

CREATE OPERATOR FAMILY mot.inet_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.inet_ops DEFAULT FOR TYPE pg_catalog.inet USING mot_foreign_index FAMILY mot.inet_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.network_cmp(pg_catalog.inet, pg_catalog.inet);

CREATE OPERATOR FAMILY mot.bit_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.bit_ops DEFAULT FOR TYPE pg_catalog."bit" USING mot_foreign_index FAMILY mot.bit_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.bitcmp(pg_catalog."bit", pg_catalog."bit");

CREATE OPERATOR FAMILY mot.varbit_ops USING mot_foreign_index;
CREATE OPERATOR CLASS mot.varbit_ops DEFAULT FOR TYPE pg_catalog.varbit USING mot_foreign_index FAMILY mot.varbit_ops AS
  OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
  FUNCTION 1 pg_catalog.varbitcmp(pg_catalog.varbit, pg_catalog.varbit);
