//! What administrators ask.
//!
//! | file | what |
//! |---|---|
//! | `views` | the views `mot.stat_*`; `mot.stat_horizon` is in `transaction/horizon/holders.rs` |
//! | `sizes` | sizes of tables and indexes |
//! | `check` | `mot.check`, and `mot.storages` |
//!
//! The uppermost room: it may call every other one, and none calls it. SQL calls its functions.
mod check;
mod sizes;
mod views;
