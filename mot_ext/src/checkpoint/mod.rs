//! Checkpoint files, and the gates by which PostgreSQL's checkpoints and backups wait for them.
//! README.md beside this file has the protocol; `workers/checkpointer.rs` is the process.
pub mod backup_start;
pub mod base_backups;
pub mod files;
pub mod gate;
pub mod recovery_end;
pub mod restartpoint;
pub mod shutdown;
