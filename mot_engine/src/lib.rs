//! The engine.

pub mod memory;
