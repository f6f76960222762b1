//! Every limit, with its unit and its reason.

/// Row ids that files and index entries can name. A table's directory ends before
/// (`DIRECTORY_ROW_IDS_MAX`): there more rows are refused.
pub const ROW_IDS_MAX: u64 = (u32::MAX as u64 - 1) * 1024;

/// Bits of a row id where it shares a word with something else.
pub(crate) const ROW_ID_BITS: u32 = 42;

const _: () = assert!(ROW_IDS_MAX <= 1 << ROW_ID_BITS);

/// Bytes of one row, which has to fit into a log record of its own. Refused by the statement:
/// COMMIT could not log it any more.
pub const ROW_BYTES_MAX: usize = LOG_RECORD_BYTES_OF_LONG_ROW_MAX - 64;

/// Bytes of one encoded key, with those that collations add, as the tree takes 16 KiB. A btree's
/// limit is 2,704 bytes (BTMaxItemSize) of a row whose values are compressed.
pub const KEY_BYTES_MAX: usize = 15 * 1024;

/// Indexes of one table. A fixed array in the table keeps the writers' walk free of pointers.
pub const INDEXES_PER_TABLE_MAX: usize = 64;

/// Keys of a row that are entered together; further indexes come afterwards.
pub(crate) const KEYS_TOGETHER: usize = 8;

/// Bytes of one log record. A record's insertion holds a WAL insertion lock, and PostgreSQL 15
/// accepts records its recovery cannot read; small records also let the flush of others continue.
pub const LOG_RECORD_BYTES_MAX: usize = 4 << 20;

/// Bytes of the log record of one very long row. PostgreSQL 15 writes a record of 1 GiB that its
/// own recovery then cannot allocate.
pub const LOG_RECORD_BYTES_OF_LONG_ROW_MAX: usize = 512 << 20;

/// Sessions (processes and threads) joined to the engine at once.
pub const SESSIONS_MAX: usize = if cfg!(feature = "model") { 8 } else { 2048 };

/// Of these, how many are left to recovery, workers and a checkpoint's threads (256 at most),
/// however many clients there are: a checkpoint that could not join would fail, and so would the
/// next, while the log piles up.
pub const SESSIONS_NOT_OF_CLIENTS: usize = if cfg!(feature = "model") { 0 } else { 320 };
