//! A real server under faults of its checkpoint files, their disk and the worker that writes them:
//! each has the outcome that mot_ext/src/checkpoint/README.md ("Failures") states, and no
//! acknowledged commit is lost.
//!
//! Full disks are small tmpfs mounts, for which the tests must run as root.

mod disk;
mod files;
mod server;
mod sync;
mod tiny;
mod worker;
