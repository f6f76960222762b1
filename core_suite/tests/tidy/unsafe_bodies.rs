//! Functions that are one `unsafe` block from their first line to the last, told from the
//! indentation that rustfmt gives. What lies above the typed views of the lowest room is to be safe
//! Rust, with small blocks around calls into PostgreSQL.
use crate::functions::bodies;

/// Code lines from which such a function counts.
const LINES_MIN: usize = 10;

/// How many of a file's functions are one block.
pub fn unsafe_bodies(text: &str) -> usize {
    bodies(text).filter(|body| is_one_block(body)).count()
}

/// Whether lines of code, comments aside, are one block.
fn is_one_block(body: &[&str]) -> bool {
    let mut code = body.iter().filter(|line| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with("//")
    });
    let (Some(first), Some(last)) = (code.next(), code.next_back()) else {
        return false;
    };
    let begins = first.trim_start() == "unsafe {";
    let indent = first.len() - first.trim_start().len();
    let inner: Vec<_> = code.collect();
    begins
        && last.len() == indent + 1
        && last.ends_with('}')
        && inner.len() + 2 >= LINES_MIN
        && inner
            .iter()
            .all(|line| line.len() - line.trim_start().len() > indent)
}

#[test]
fn one_block_is_told_from_several() {
    let of = |body: &str| format!("fn one() {{\n{body}}}\n");
    let lines = "        a();\n".repeat(8);
    let one = of(&format!(
        "    // SAFETY: so.\n    unsafe {{\n{lines}    }}\n"
    ));
    assert_eq!(unsafe_bodies(&one), 1);
    let short = of("    unsafe {\n        a();\n    }\n");
    assert_eq!(unsafe_bodies(&short), 0);
    let two = of(&format!(
        "    unsafe {{\n{lines}    }}\n    unsafe {{\n        a();\n    }}\n"
    ));
    assert_eq!(unsafe_bodies(&two), 0);
    let behind = of(&format!("    let a = 1;\n    unsafe {{\n{lines}    }}\n"));
    assert_eq!(unsafe_bodies(&behind), 0);
}
