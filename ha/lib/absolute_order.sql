-- A users' operator class, by absolute values: their keys are labels.
CREATE FUNCTION abs_lt(int, int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT abs($1) < abs($2)';
CREATE FUNCTION abs_eq(int, int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT abs($1) = abs($2)';
CREATE FUNCTION abs_cmp(int, int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT btint4cmp(abs($1), abs($2))';
CREATE OPERATOR <# (leftarg = int, rightarg = int, function = abs_lt);
CREATE OPERATOR =# (leftarg = int, rightarg = int, function = abs_eq);
CREATE OPERATOR CLASS abs_ops FOR TYPE int USING btree AS OPERATOR 1 <#, OPERATOR 3 =#, FUNCTION 1 abs_cmp(int, int);
