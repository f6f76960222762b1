//! Programs for conditions and expressions over a row's stored bytes.
//!
//! A program raises nothing. Where PostgreSQL would raise an error, or needs more than the row's
//! bytes, the answer is [`Unsure`], and the embedder asks PostgreSQL.
mod evaluate;
mod evaluate_group;
mod group;
mod kind;
mod operators;
mod pattern;
mod program;
mod row;

pub use evaluate::Place;
pub use evaluate_group::Groups;
pub use group::{Answer, Group, Lacking, Numbers, ROWS, Rows, members};
pub use kind::WordKind;
pub use operators::{Arithmetic, Comparison};
pub use pattern::Pattern;
pub use program::{Condition, Known, NoParameters, Number, ParameterValues, Sure, Text, Unsure};
pub use row::{Found, Layout, Row, bytes_of};
