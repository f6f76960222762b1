//! What runs inside the scans of memory-optimized tables: conditions evaluated over rows where they
//! lie ([`filter`]), and aggregates over those ([`aggregate`]).
pub mod aggregate;
pub mod expressions;
pub mod filter;
