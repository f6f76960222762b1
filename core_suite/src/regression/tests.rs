use super::units;

/// Places and outputs, without the texts.
fn cut(script: &str, result: &str) -> Vec<(String, String)> {
    units(script, result)
        .into_iter()
        .map(|unit| (unit.place, unit.output.join("\n")))
        .collect()
}

fn expected(units: &[(&str, &str)]) -> Vec<(String, String)> {
    units
        .iter()
        .map(|(place, output)| (place.to_string(), output.to_string()))
        .collect()
}

#[test]
fn output_belongs_to_the_statement_before_it() {
    let script =
        "-- A comment.\nSELECT 1\n  AS a;\n\n-- Another one.\nCREATE TABLE t ();\nDROP TABLE u;\n";
    let result = "-- A comment.\nSELECT 1\n  AS a;\n a \n---\n 1\n(1 row)\n\n-- Another one.\n\
                  CREATE TABLE t ();\nDROP TABLE u;\nERROR:  table \"u\" does not exist\n";
    assert_eq!(
        cut(script, result),
        expected(&[
            ("2", " a \n---\n 1\n(1 row)\n"),
            ("6", ""),
            ("7", "ERROR:  table \"u\" does not exist"),
        ])
    );
}

#[test]
fn output_that_looks_like_the_script_stays_output() {
    let script = "\\sf f\n  SELECT 2\n;\nSELECT 3;\n";
    let result = "\\sf f\nCREATE FUNCTION f()\n  SELECT 2\nEND\n  SELECT 2\n;\n 2\nSELECT 3;\n 3\n";
    assert_eq!(
        cut(script, result),
        expected(&[
            ("1", "CREATE FUNCTION f()\n  SELECT 2\nEND"),
            ("2", " 2"),
            ("4", " 3"),
        ])
    );
}

#[test]
fn data_of_a_copy_is_in_no_result() {
    let script = "COPY t FROM stdin;\n1\t;\n\\.\nSELECT 1;\n";
    let result = "COPY t FROM stdin;\nNOTICE:  seen\nSELECT 1;\n 1\n";
    assert_eq!(
        cut(script, result),
        expected(&[("1", "NOTICE:  seen"), ("4", " 1")])
    );
}

#[test]
fn data_after_a_failed_copy_is_its_output() {
    let script = "COPY t FROM stdin;\n1\t;\n\\.\nSELECT 1;\n";
    let result = "COPY t FROM stdin;\nERROR:  no t\n1\t;\nERROR:  syntax error\n\\.\n\
                  invalid command \\.\nSELECT 1;\n 1\n";
    assert_eq!(
        cut(script, result),
        expected(&[
            (
                "1",
                "ERROR:  no t\n1\t;\nERROR:  syntax error\n\\.\ninvalid command \\."
            ),
            ("4", " 1"),
        ])
    );
}

#[test]
fn statements_in_an_inactive_branch_have_no_output() {
    let script = "\\if :no\nSELECT 1;\n\\else\nSELECT 2;\n\\endif\n";
    let result = "\\if :no\nSELECT 1;\n\\else\nSELECT 2;\n 2\n\\endif\n";
    assert_eq!(
        cut(script, result),
        expected(&[("1", ""), ("2", ""), ("3", ""), ("4", " 2"), ("5", "")])
    );
}

#[test]
fn a_do_block_is_one_statement() {
    let script = "DO $$\nBEGIN\n  RAISE NOTICE 'x;';\nEND $$;\nSELECT 1 \\gset\n";
    let result = "DO $$\nBEGIN\n  RAISE NOTICE 'x;';\nEND $$;\nNOTICE:  x;\nSELECT 1 \\gset\n";
    assert_eq!(
        cut(script, result),
        expected(&[("1", "NOTICE:  x;"), ("5", "")])
    );
}

#[test]
fn several_statements_on_a_line_are_one_unit() {
    let script = "BEGIN; SELECT 1; COMMIT;\nSELECT 2;\n";
    let result = "BEGIN; SELECT 1; COMMIT;\n 1\nSELECT 2;\n 2\n";
    assert_eq!(cut(script, result), expected(&[("1", " 1"), ("2", " 2")]));
}

#[test]
fn what_psql_did_not_come_to_has_not_run() {
    let script = "SELECT 1;\nSELECT 2;\n";
    let result = "SELECT 1;\nserver closed the connection unexpectedly\n";
    let units = units(script, result);
    assert_eq!(
        units.iter().map(|unit| unit.ran).collect::<Vec<_>>(),
        [true, false]
    );
    assert_eq!(
        units[0].output,
        ["server closed the connection unexpectedly"]
    );
}

#[test]
fn a_misread_script_costs_no_other_statement() {
    // A setting that the reader does not see makes the quote of the first line a closed one.
    let script = "SELECT '\\'a';\nSELECT 2;\nSELECT 3;\n";
    let result = "SELECT '\\'a';\n a\nSELECT 2;\n 2\nSELECT 3;\n 3\n";
    let outputs: Vec<String> = units(script, result)
        .into_iter()
        .flat_map(|unit| unit.output)
        .collect();
    assert_eq!(outputs, [" a", " 2", " 3"]);
}
