//! Checkpoint files, and the gates by which PostgreSQL's checkpoints and backups wait for them.
//! README.md beside this file has the protocol; `workers/checkpointer.rs` is the process.
pub mod copies;
pub mod files;
pub mod first_copy;
pub mod gate;
pub mod leave;
pub mod recovery_end;
pub mod restartpoint;
