//! What a scan computes from the bytes of stored rows, without PostgreSQL (README.md).
//!
//! The glue compiles PostgreSQL's expressions to the programs here, and asks PostgreSQL where a
//! program is not sure. So all of it runs in tests without a server.
pub mod aggregate;
pub mod ends;
pub mod filter;
pub mod patch;
pub mod varlena;
