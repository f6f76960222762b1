//! What of a table is logged and what checkpoints hold of it.
//!
//! A storage has its persistence from its first moment and never another one: `ALTER TABLE ... SET
//! LOGGED` and `SET UNLOGGED` make a new storage, into which the rows are copied.

/// What of a table's storage outlives the server.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[repr(u32)]
pub enum Persistence {
    /// Definitions and rows are logged, and checkpoints hold both.
    Logged = 0,
    /// Definitions are logged, rows never. Of the checkpoints the last one of a shutdown alone
    /// holds the rows. A crash, a standby and a backup have the table without rows.
    Unlogged = 1,
    /// Of one session: neither definitions nor rows are logged, and no checkpoint names it.
    Temporary = 2,
}

impl Persistence {
    /// Whether changes of rows are logged.
    #[inline]
    pub fn logs_rows(self) -> bool {
        self == Persistence::Logged
    }

    /// Whether the log and checkpoints name the table and its indexes.
    #[inline]
    pub fn logs_definitions(self) -> bool {
        self != Persistence::Temporary
    }

    /// How a manifest names it.
    pub(crate) fn to_word(self) -> u32 {
        self as u32
    }

    /// What a manifest names so; `None` for what cannot stand in one.
    pub(crate) fn from_word(word: u32) -> Option<Persistence> {
        [Persistence::Logged, Persistence::Unlogged]
            .into_iter()
            .find(|persistence| persistence.to_word() == word)
    }
}
