//! Removing what no snapshot sees any more.
//!
//! | file | what |
//! |---|---|
//! | `reclaimer` | the worker: the horizon, dead versions, what is dropped for good |
//! | `idle_sleep` | its long sleep |
//! | `orphans` | storages of databases that were dropped while the library was not preloaded |
//!
//! Called by `workers`. The engine's part is `mot_engine/src/reclaim/README.md`.
mod idle_sleep;
pub mod orphans;
mod reclaimer;
