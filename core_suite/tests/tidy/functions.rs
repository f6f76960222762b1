//! Functions by their length, told from the indentation that rustfmt gives.

/// Words that may stand before `fn`.
const BEFORE: [&str; 6] = ["pub", "const", "async", "unsafe", "extern", "default"];

/// The lengths in lines of the functions that are longer than so many.
pub fn long_functions(text: &str, lines_max: usize) -> impl Iterator<Item = usize> {
    functions(text)
        .map(|lines| lines.len())
        .filter(move |lines| *lines > lines_max)
}

/// What stands between the braces of each function, in lines.
pub fn bodies(text: &str) -> impl Iterator<Item = Vec<&str>> {
    functions(text).map(|lines| {
        let begins = |line: &&str| line.ends_with('{');
        let head = lines.iter().position(begins).unwrap_or(0) + 1;
        lines[head..lines.len().max(head + 1) - 1].to_vec()
    })
}

/// The lines of each function, with its head and its last brace. A function within another one
/// is part of that.
fn functions(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let mut begun: Option<(Vec<&str>, usize)> = None;
    let mut all = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match &mut begun {
            // One that is declared, or ends, in the same line is short.
            None if begins_function(line) && !line.ends_with(['}', ';']) => {
                begun = Some((vec![line], indent));
            }
            None => {}
            Some((lines, of)) if indent == *of && line[indent..].starts_with('}') => {
                lines.push(line);
                all.push(std::mem::take(lines));
                begun = None;
            }
            // A declaration without a body.
            Some((_, of)) if indent == *of && line.ends_with(';') => begun = None,
            Some((lines, _)) => lines.push(line),
        }
    }
    all.into_iter()
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
