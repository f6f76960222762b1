//! Removing what nobody sees any more: the worker that takes out dead versions and frees what is
//! gone, its sleep, and storages of databases that were dropped without us.
pub mod idle_sleep;
pub mod orphans;
mod reclaimer;
