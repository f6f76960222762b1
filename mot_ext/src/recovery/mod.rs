//! Recovery: loading the newest checkpoint, reading the WAL behind it, and replaying records of our
//! own resource manager. README.md has the protocol, and says what each file holds.
//!
//! May be called by `workers` and `monitoring`. Calls `checkpoint`, which finds and opens the
//! files, and rooms below it. `_PG_init` gives two of its functions to `shared_memory`.
pub mod commit_log;
pub mod ended;
mod initial_checkpoint;
pub mod load;
pub mod reader;
pub mod replay;
pub mod rmgr;
pub mod stall;
pub mod warm;
mod watch;
pub mod xid_set;

use crate::transaction::session;

/// Registers the resource manager while the server preloads libraries.
pub fn init() {
    session::load_in_single_user_mode_by(load::load_single_user);
    rmgr::init();
}
