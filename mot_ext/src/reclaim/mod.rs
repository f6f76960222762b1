//! Removing what no snapshot sees any more.
//!
//! | file | what |
//! |---|---|
//! | `reclaimer` | the worker: the horizon, dead versions, what is dropped for good |
//! | `idle_sleep` | its long sleeps |
//! | `orphans` | storages of databases that were dropped while the library was not preloaded |
//!
//! May be called by `workers` and `monitoring`. The engine's part is
//! `mot_engine/src/reclaim/README.md`.
pub mod idle_sleep;
pub mod orphans;
mod reclaimer;
