//! Types and operator classes whose order only functions in SQL and PL/pgSQL know, so that the keys
//! of a MOT index are labels.
//!
//! Operators are strict, as scans of indexes take them to be. Equal values may be written
//! otherwise: texts in lower and upper case, numbers with either sign.

/// A btree operator class over a comparison function of its own.
struct Class {
    name: &'static str,
    of: &'static str,
    /// It is the type's own, with operators that are named as usual. Those of others end in `#`.
    is_default: bool,
    /// The language and body of the comparison.
    comparison: &'static str,
    /// What the equality of a type's own class compares, of `$1`.
    compared: &'static str,
}

const CLASSES: [Class; 3] = [
    Class {
        name: "spelled",
        of: "{s}.spelled",
        is_default: true,
        comparison: "LANGUAGE sql AS $$ SELECT bttextcmp(lower(coalesce(($1).v, '')) COLLATE \"C\", \
             lower(coalesce(($2).v, '')) COLLATE \"C\") $$",
        compared: "lower(coalesce(($1).v, ''))",
    },
    Class {
        name: "amount",
        of: "{s}.amount",
        is_default: true,
        comparison: "LANGUAGE plpgsql AS $$ BEGIN \
             IF ($1).n IS DISTINCT FROM ($2).n THEN RETURN btint4cmp(coalesce(($1).n, 0), coalesce(($2).n, \
             0)); END IF; \
             RETURN bttextcmp(upper(coalesce(($1).unit, '')) COLLATE \"C\", upper(coalesce(($2).unit, '')) \
             COLLATE \"C\"); END $$",
        compared: "coalesce(($1).n, 0) || upper(coalesce(($1).unit, ''))",
    },
    Class {
        name: "far",
        of: "int4",
        is_default: false,
        comparison: "LANGUAGE sql AS 'SELECT btint8cmp(abs($1::int8), abs($2::int8))'",
        compared: "",
    },
];

/// A test, the name of its function, and what says the same of swapped values, and the opposite.
/// The last one is no member of a class.
const TESTS: [(&str, &str, &str, &str); 6] = [
    ("<", "lt", ">", ">="),
    ("<=", "le", ">=", ">"),
    ("=", "eq", "=", "<>"),
    (">=", "ge", "<=", "<"),
    (">", "gt", "<", "<="),
    ("<>", "ne", "<>", "="),
];

/// What makes them in a schema: the types `spelled`, `amount`, and `stretch`, a range of the first;
/// the operator class `far_ops` of `int4`; and the collation `loose`, by which texts that differ
/// are equal.
pub fn definitions(schema: &str) -> Vec<String> {
    let mut all = vec![
        format!("CREATE TYPE {schema}.spelled AS (v text)"),
        format!("CREATE TYPE {schema}.amount AS (n int, unit text)"),
        format!(
            "CREATE COLLATION {schema}.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        ),
    ];
    for class in &CLASSES {
        all.extend(class.definitions(schema));
    }
    all.push(format!(
        "CREATE TYPE {schema}.stretch AS RANGE (subtype = {schema}.spelled, subtype_opclass = {schema}.spelled_ops, \
         multirange_type_name = {schema}.stretches)"
    ));
    all
}

impl Class {
    fn definitions(&self, schema: &str) -> Vec<String> {
        let name = format!("{schema}.{}", self.name);
        let of = self.of.replace("{s}", schema);
        let mut all = vec![format!(
            "CREATE FUNCTION {name}_cmp({of}, {of}) RETURNS int IMMUTABLE STRICT {}",
            self.comparison
        )];
        let operator = |test: &str| match self.is_default {
            true => test.to_owned(),
            false => format!("{test}#"),
        };
        let mut members = Vec::new();
        for (at, (test, function, swapped, opposite)) in TESTS.into_iter().enumerate() {
            all.push(format!(
                "CREATE FUNCTION {name}_{function}({of}, {of}) RETURNS bool LANGUAGE sql IMMUTABLE STRICT \
                 AS 'SELECT {name}_cmp($1, $2) {test} 0'"
            ));
            let joins = match test {
                "=" if self.is_default => ", MERGES, HASHES",
                "=" => ", MERGES",
                _ => "",
            };
            all.push(format!(
                "CREATE OPERATOR {schema}.{} (LEFTARG = {of}, RIGHTARG = {of}, FUNCTION = {name}_{function}, \
                 COMMUTATOR = OPERATOR({schema}.{}), NEGATOR = OPERATOR({schema}.{}){joins})",
                operator(test),
                operator(swapped),
                operator(opposite)
            ));
            if test != "<>" {
                members.push(format!("OPERATOR {} {schema}.{}", at + 1, operator(test)));
            }
        }
        all.push(format!(
            "CREATE OPERATOR CLASS {name}_ops {}FOR TYPE {of} USING btree AS {}, FUNCTION 1 {name}_cmp({of}, {of})",
            if self.is_default { "DEFAULT " } else { "" },
            members.join(", ")
        ));
        if self.is_default {
            all.extend(self.hashes(schema));
        }
        all
    }

    /// A hash class, without which core has no plan for ranges of the type.
    fn hashes(&self, schema: &str) -> [String; 3] {
        let name = format!("{schema}.{}", self.name);
        let of = self.of.replace("{s}", schema);
        let text = format!("({}) COLLATE \"C\"", self.compared);
        [
            format!(
                "CREATE FUNCTION {name}_hash({of}) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT hashtext({text}) $$"
            ),
            format!(
                "CREATE FUNCTION {name}_hash({of}, int8) RETURNS int8 LANGUAGE sql IMMUTABLE \
                 AS $$ SELECT hashtextextended({text}, $2) $$"
            ),
            format!(
                "CREATE OPERATOR CLASS {name}_hashes DEFAULT FOR TYPE {of} USING hash AS OPERATOR 1 {schema}.=, \
                 FUNCTION 1 {name}_hash({of}), FUNCTION 2 {name}_hash({of}, int8)"
            ),
        ]
    }
}
