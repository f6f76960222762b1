//! Compiled statements: simple plans on one memory-optimized table, run without core's executor.
//!
//! README.md beside this file says which plans, why the result is the same, and what keeps a compiled form true.
mod cache;
mod change;
mod hooks;
mod insert;
mod plain;
mod select;
mod shape;
mod statement;

pub use cache::current_row;

/// Installs the executor hooks; called once, while the server loads its libraries.
pub fn init() {
    hooks::init();
}
