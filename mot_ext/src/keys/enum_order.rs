//! The order in which keys have an enum's values: that of their oids, as an operator family.
use pgrx::extension_sql;
use pgrx::pg_sys;

/// A column of `pg_opfamily`.
const OPFAMILY_OID: pg_sys::AttrNumber = 1;

extension_sql!(
    "
CREATE FUNCTION mot.enum_oid_lt(anyenum, anyenum) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'oidlt';
CREATE FUNCTION mot.enum_oid_le(anyenum, anyenum) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'oidle';
CREATE FUNCTION mot.enum_oid_ge(anyenum, anyenum) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'oidge';
CREATE FUNCTION mot.enum_oid_gt(anyenum, anyenum) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'oidgt';
CREATE FUNCTION mot.enum_oid_cmp(anyenum, anyenum) RETURNS integer LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'btoidcmp';
CREATE OPERATOR mot.~<~ (LEFTARG = anyenum, RIGHTARG = anyenum, FUNCTION = mot.enum_oid_lt,
  COMMUTATOR = OPERATOR(mot.~>~), NEGATOR = OPERATOR(mot.~>=~), RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR mot.~<=~ (LEFTARG = anyenum, RIGHTARG = anyenum, FUNCTION = mot.enum_oid_le,
  COMMUTATOR = OPERATOR(mot.~>=~), NEGATOR = OPERATOR(mot.~>~), RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR mot.~>=~ (LEFTARG = anyenum, RIGHTARG = anyenum, FUNCTION = mot.enum_oid_ge,
  COMMUTATOR = OPERATOR(mot.~<=~), NEGATOR = OPERATOR(mot.~<~), RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR mot.~>~ (LEFTARG = anyenum, RIGHTARG = anyenum, FUNCTION = mot.enum_oid_gt,
  COMMUTATOR = OPERATOR(mot.~<~), NEGATOR = OPERATOR(mot.~<=~), RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR FAMILY mot.enum_oids USING btree;
COMMENT ON OPERATOR FAMILY mot.enum_oids USING btree IS 'enums by the oids of their values: the order of keys of memory-optimized tables';
ALTER OPERATOR FAMILY mot.enum_oids USING btree ADD
  OPERATOR 1 mot.~<~ (anyenum, anyenum), OPERATOR 2 mot.~<=~ (anyenum, anyenum),
  OPERATOR 3 pg_catalog.= (anyenum, anyenum),
  OPERATOR 4 mot.~>=~ (anyenum, anyenum), OPERATOR 5 mot.~>~ (anyenum, anyenum),
  FUNCTION 1 (anyenum, anyenum) mot.enum_oid_cmp (anyenum, anyenum),
  FUNCTION 2 (anyenum, anyenum) pg_catalog.btoidsortsupport (internal);
",
    name = "enum_oids"
);

/// The family of the statements above; `None`: the extension is of an earlier build.
pub(super) fn enum_oids() -> Option<pg_sys::Oid> {
    // SAFETY: catalog look-ups by names.
    let found = unsafe {
        let schema = pg_sys::get_namespace_oid(c"mot".as_ptr(), true);
        pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::OPFAMILYAMNAMENSP as i32,
            OPFAMILY_OID,
            pg_sys::Datum::from(pg_sys::BTREE_AM_OID),
            pg_sys::Datum::from(c"enum_oids".as_ptr()),
            pg_sys::Datum::from(schema),
            pg_sys::Datum::from(0),
        )
    };
    (found != pg_sys::InvalidOid).then_some(found)
}
