use super::*;
use crate::known::tests::entries;

fn unit(text: &str, output: &str) -> Unit {
    Unit {
        place: "1".to_string(),
        text: text.to_string(),
        output: output.lines().map(str::to_string).collect(),
        ran: true,
    }
}

fn verdict(text: &str, base: &str, test: &str, list: &str) -> Verdict {
    let (base, test) = (unit(text, base), unit(text, test));
    judge("temp", (&base, &test), &entries(list), &HashSet::new())
}

const UNLOGGED: &str = "[[difference]]\nreason = 'no unlogged tables'\nfiles = ['temp']\nmost = 1\n\
    error = '^ERROR:  unlogged tables'\n";

#[test]
fn equal_output_is_identical() {
    assert_eq!(verdict("SELECT 1;", " 1", " 1", ""), Verdict::Identical);
}

#[test]
fn rows_in_another_order_are_order() {
    assert_eq!(
        verdict("SELECT a FROM t;", " 1\n 2", " 2\n 1", ""),
        Verdict::Order
    );
    assert_eq!(
        verdict("SELECT a FROM t;", " 1\n 2", " 2\n 2", ""),
        Verdict::Different
    );
    assert_eq!(
        verdict("SELECT a FROM t;", " 1\n 2", " 2\n 1\n 1", ""),
        Verdict::Different
    );
}

#[test]
fn order_counts_where_the_statement_names_one() {
    let text = "SELECT a, b FROM t\nORDER  BY a;";
    assert_eq!(verdict(text, " 1\n 2", " 2\n 1", ""), Verdict::Different);
    let listed = "[[difference]]\nreason = 'ties'\nfiles = ['temp']\nmost = 1\norder = 'BY a;'\n";
    assert_eq!(
        verdict(text, " 1\n 2", " 2\n 1", listed),
        Verdict::Listed(vec![0])
    );
}

#[test]
fn rows_of_several_lines_are_compared_whole() {
    let base = " a | x+\n   | y\n b | x+\n   | z";
    let swapped = " a | x+\n   | z\n b | x+\n   | y";
    let sorted = " b | x+\n   | z\n a | x+\n   | y";
    assert_eq!(verdict("SELECT;", base, swapped, ""), Verdict::Different);
    assert_eq!(verdict("SELECT;", base, sorted, ""), Verdict::Order);
}

#[test]
fn a_listed_error_explains_missing_rows_only() {
    let error = "ERROR:  unlogged tables are refused\nHINT:  Use another one.";
    let run = |base, test: &str| verdict("CREATE UNLOGGED TABLE t ();", base, test, UNLOGGED);
    assert_eq!(run("", error), Verdict::Listed(vec![0]));
    assert_eq!(run("NOTICE:  x\n 1", error), Verdict::Listed(vec![0]));
    assert_eq!(run(" 1", &format!("{error}\n 2")), Verdict::Different);
    assert_eq!(
        run("", &format!("ERROR:  other\n{error}")),
        Verdict::Different
    );
}

#[test]
fn an_entry_holds_in_its_files_and_statements() {
    let error = "ERROR:  unlogged tables are refused";
    let list = entries(UNLOGGED);
    let (base, test) = (unit("x", ""), unit("x", error));
    assert_eq!(
        judge("gist", (&base, &test), &list, &HashSet::new()),
        Verdict::Different
    );
    let list = entries(&format!("{UNLOGGED}statement = 'CREATE'\n"));
    assert_eq!(
        judge("temp", (&base, &test), &list, &HashSet::new()),
        Verdict::Different
    );
}

#[test]
fn a_notice_explains_no_rows() {
    let list =
        "[[difference]]\nreason = 'a notice'\nfiles = ['temp']\nmost = 1\nerror = 'NOTICE:  new'\n";
    assert_eq!(
        verdict("x", " 1", "NOTICE:  new\n 1", list),
        Verdict::Listed(vec![0])
    );
    assert_eq!(verdict("x", " 1", "NOTICE:  new", list), Verdict::Different);
}

#[test]
fn an_error_of_the_base_alone_has_its_own_pattern() {
    let list = "[[difference]]\nreason = 'heap refuses'\nfiles = ['temp']\nmost = 1\nbase_error = 'division'\n";
    let heap = "ERROR:  division by zero";
    assert_eq!(verdict("x", heap, " 1", list), Verdict::Listed(vec![0]));
    assert_eq!(verdict("x", " 1", heap, list), Verdict::Different);
    assert_eq!(verdict("x", heap, " 1", ""), Verdict::Different);
}

#[test]
fn a_plan_is_listed_by_a_differing_line() {
    let list = "[[difference]]\nreason = 'no bitmaps'\nfiles = ['temp']\nmost = 1\nplan = 'Bitmap Heap Scan'\n";
    let (heap, other) = (
        "QUERY PLAN\n Bitmap Heap Scan on t\n  Limit",
        "QUERY PLAN\n Index Scan on t\n  Limit",
    );
    let explain = "EXPLAIN (COSTS OFF) SELECT;";
    assert_eq!(
        verdict(explain, heap, other, list),
        Verdict::Listed(vec![0])
    );
    assert_eq!(verdict("SELECT;", heap, other, list), Verdict::Different);
    assert_eq!(verdict(explain, heap, "", list), Verdict::Different);
    let both = [heap, " Sort"].join("\n");
    assert_eq!(verdict(explain, heap, &both, list), Verdict::Different);
}

#[test]
fn a_mask_leaves_the_other_columns_compared() {
    let list = "[[difference]]\nreason = 'ctid'\nfiles = ['temp']\nmost = 1\nstatement = 'ctid'\n\
        mask = '\\(\\d+,\\d+\\)'\n";
    let heap = " ctid  | a \n-------+---\n (0,1) | 1\n (0,2) | 2";
    let other = " ctid     | a \n----------+---\n (0,8193) | 2\n (0,1)    | 1";
    assert_eq!(
        verdict("SELECT ctid, a;", heap, other, list),
        Verdict::Listed(vec![0])
    );
    let (steps_of_heap, steps_of_other) = (
        "ctid |a\n-----+-\n(0,1)|1",
        "ctid    |a\n--------+-\n(0,8193)|1\n",
    );
    assert_eq!(
        verdict("SELECT ctid, a;", steps_of_heap, steps_of_other, list),
        Verdict::Listed(vec![0])
    );
    let wrong = other.replace("| 2", "| 3");
    assert_eq!(
        verdict("SELECT ctid, a;", heap, &wrong, list),
        Verdict::Different
    );
    assert_eq!(verdict("SELECT a;", heap, other, list), Verdict::Different);
}

#[test]
fn rows_are_listed_by_place_where_the_statement_asks_by_place() {
    let list = "[[difference]]\nreason = 'places'\nfiles = ['temp']\nmost = 1\nplace = '.'\n";
    let run = |text| verdict(text, " 3", " 2", list);
    assert_eq!(
        run("SELECT a FROM t WHERE ctid < '(1,0)';"),
        Verdict::Listed(vec![0])
    );
    assert_eq!(run("FETCH NEXT FROM c;"), Verdict::Listed(vec![0]));
    assert_eq!(run("SELECT a FROM t;"), Verdict::Different);
}

#[test]
fn missing_rows_are_listed_but_no_new_ones() {
    let list =
        "[[difference]]\nreason = 'refused'\nfiles = ['temp']\nmost = 1\nmissing = 'FROM t'\n";
    let base = "  a   \n------\n 1\n 1234\n(2 rows)\n";
    let run = |test| verdict("SELECT a FROM t;", base, test, list);
    assert_eq!(run(" a \n---\n 1\n(1 row)\n"), Verdict::Listed(vec![0]));
    assert_eq!(run(" a \n---\n 2\n(1 row)\n"), Verdict::Different);
    assert_eq!(
        verdict("SELECT a FROM u;", " 1\n 2", " 1", list),
        Verdict::Different
    );
}

#[test]
fn rows_are_listed_where_a_refused_key_let_others_in() {
    let list = &entries(concat!(
        "[[difference]]\nreason = 'no key'\nfiles = ['temp']\nmost = 1\nbase_error = 'key'\n",
        "[[difference]]\nreason = 'no key'\nfiles = ['temp']\nmost = 1\nunguarded = 'FROM'\n",
    ));
    let insert = || {
        (
            unit("INSERT INTO t VALUES (1);", "ERROR:  key"),
            unit("INSERT INTO t VALUES (1);", ""),
        )
    };
    let select = |table: &str| {
        let text = format!("SELECT a FROM {table};");
        (unit(&text, " 1\n"), unit(&text, " 1\n 1\n"))
    };
    let verdicts = |pairs| -> Vec<Verdict> {
        let compared = compare("temp", pairs, list);
        compared.into_iter().map(|pair| pair.verdict).collect()
    };
    assert_eq!(
        verdicts(vec![insert(), select("t"), select("u")]),
        [
            Verdict::Listed(vec![0]),
            Verdict::Listed(vec![1]),
            Verdict::Different
        ]
    );
    assert_eq!(verdicts(vec![select("t")]), [Verdict::Different]);
}

#[test]
fn a_set_operation_may_show_another_of_equal_values() {
    let list = "[[difference]]\nreason = 'equal'\nfiles = ['temp']\nmost = 1\narbitrary = 'abc'\n";
    let run = |text, base, test| verdict(text, base, test, list);
    let both = "SELECT x FROM (SELECT x FROM t INTERSECT SELECT x FROM u) s WHERE x = 'abc';";
    let (none, one) = (" x \n---\n(0 rows)", " x \n---\n abc\n(1 row)");
    assert_eq!(run(both, none, one), Verdict::Listed(vec![0]));
    assert_eq!(run(both, one, none), Verdict::Different);
    assert_eq!(
        run("SELECT x FROM t WHERE x = 'abc';", none, one),
        Verdict::Different
    );
}

#[test]
fn descriptions_are_listed_by_statement_but_never_tables() {
    let list = "[[difference]]\nreason = 'fewer indexes'\nfiles = ['temp']\nmost = 1\ndescription = 'FROM|^.d'\n";
    let run = |text| verdict(text, " 3", " 2", list);
    assert_eq!(
        run("SELECT count(*) FROM pg_class;"),
        Verdict::Listed(vec![0])
    );
    assert_eq!(run("\\d t"), Verdict::Listed(vec![0]));
    assert_eq!(run("SELECT count(*) FROM t;"), Verdict::Different);
    assert_eq!(run("SELECT pg_sleep(0), a FROM t;"), Verdict::Different);
}

#[test]
fn the_rest_of_a_run_that_ended_is_not_run() {
    let absent = Unit {
        ran: false,
        ..unit("c", "")
    };
    let pairs = |output| {
        vec![
            (unit("a", ""), unit("a", output)),
            (unit("c", ""), absent.clone()),
        ]
    };
    let verdicts = |output| -> Vec<Verdict> {
        compare("temp", pairs(output), &entries(UNLOGGED))
            .into_iter()
            .map(|comparison| comparison.verdict)
            .collect()
    };
    assert_eq!(
        verdicts("ERROR:  unlogged tables"),
        [Verdict::Listed(vec![0]), Verdict::NotRun]
    );
    assert_eq!(verdicts(""), [Verdict::Identical, Verdict::Different]);
}
