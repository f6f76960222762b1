//! The write-ahead log: records of our own resource manager. README.md beside this file describes the mechanism.
pub mod commit_log;
pub mod emit;
pub mod ended;
pub mod reader;
pub mod replay;
pub mod rmgr;
pub mod stall;
pub mod xid_set;

/// Number of our resource manager, from the range for extensions (128 to 255). It is written into every record, so it must
/// never change; 128 is also the number set aside for experiments, and mot has not reserved another one yet.
pub const RMGR_ID: u8 = 128;
/// Name of the resource manager in pg_waldump and error messages.
pub const RMGR_NAME: &std::ffi::CStr = c"mot";

/// Registers the resource manager while the server preloads libraries.
pub fn init() {
    rmgr::init();
}
