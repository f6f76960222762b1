//! Functions by their length, told from the indentation that rustfmt gives.

/// Words that may stand before `fn`.
const BEFORE: [&str; 6] = ["pub", "const", "async", "unsafe", "extern", "default"];

/// The lengths in lines of the functions that are longer than so many.
pub fn long_functions(text: &str, lines_max: usize) -> impl Iterator<Item = usize> {
    let mut begun: Option<(usize, usize)> = None;
    let mut long = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        match begun {
            // One that is declared, or ends, in the same line is short.
            None if begins_function(line) && !line.ends_with(['}', ';']) => {
                begun = Some((number, indent));
            }
            None => {}
            Some((first, of)) if indent == of && line[of..].starts_with('}') => {
                let lines = number + 1 - first;
                if lines > lines_max {
                    long.push(lines);
                }
                begun = None;
            }
            // A declaration without a body.
            Some((_, of)) if indent == of && line.ends_with(';') => begun = None,
            Some(_) => {}
        }
    }
    long.into_iter()
}

fn begins_function(line: &str) -> bool {
    let words = line.split_whitespace();
    let mut words = words.skip_while(|word| {
        let word = word.split('(').next().unwrap_or_default();
        BEFORE.contains(&word) || word.starts_with('"') || word.ends_with(')')
    });
    words.next() == Some("fn")
}

#[test]
fn a_function_ends_where_its_brace_is() {
    let text = "fn short() {}\npub(crate) unsafe extern \"C\" fn long(\n    a: i32,\n) {\n    {\n    }\n}\n";
    assert_eq!(long_functions(text, 5).collect::<Vec<_>>(), [6]);
    assert_eq!(long_functions(text, 6).count(), 0);
    let declared = "trait T {\n    fn a();\n    fn b() {\n        0;\n    }\n}\n";
    assert_eq!(long_functions(declared, 2).collect::<Vec<_>>(), [3]);
}
