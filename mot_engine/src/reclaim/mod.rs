//! Giving memory back: dead rows, versions nobody sees, entries nobody needs, storages that were dropped.
//!
//! Writers trim the rows they change (`transaction::commit`); what they cannot trim yet is found here. One process sweeps at a time.
//!
//! - A committed delete puts its tombstone on its table's graveyard. Once its transaction is below the horizon the row is dead: the chain is
//!   unlinked as a whole, then its index entries go, then the slot is free.
//! - Superseded versions are counted per table; when enough wait, a pass over the rows prunes them. After recovery a pass over every row settles
//!   what a crash left: versions of lost transactions are unlinked.

mod sweep;

pub use sweep::Sweep;
