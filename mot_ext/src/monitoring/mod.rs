//! What administrators ask: views of figures, and the check of tables.
mod check;
mod sizes;
mod views;
