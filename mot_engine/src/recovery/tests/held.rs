//! What a machine has of storages and locks that a start treats in its own way: counted, so that a
//! test that meets none of it is noticed.

use super::*;

/// Machines that had some of it.
#[derive(Copy, Clone, Default, Debug)]
pub(in crate::recovery) struct Held {
    /// Prepared transactions.
    pub(in crate::recovery) prepared: u64,
    /// Rows that these have locked and not changed.
    pub(in crate::recovery) locks: u64,
    /// Such rows of tables whose rows are not logged.
    pub(in crate::recovery) locks_unlogged: u64,
    /// Rows that are not logged, temporary ones excepted.
    pub(in crate::recovery) rows_unlogged: u64,
    /// Rows of the temporary relation.
    pub(in crate::recovery) rows_temporary: u64,
    /// Rows that became logged behind a `SET LOGGED`.
    pub(in crate::recovery) rows_switched: u64,
}

impl Held {
    /// One machine more.
    pub(in crate::recovery) fn add(&mut self, world: &World) {
        let one = world.held();
        self.prepared += one.prepared;
        self.locks += one.locks;
        self.locks_unlogged += one.locks_unlogged;
        self.rows_unlogged += one.rows_unlogged;
        self.rows_temporary += one.rows_temporary;
        self.rows_switched += one.rows_switched;
    }

    /// The rarest of what every start brings back.
    pub(in crate::recovery) fn least(&self) -> u64 {
        let held = [self.prepared, self.locks, self.rows_switched];
        held.into_iter().min().expect("some")
    }
}

impl World {
    /// Ones and zeros.
    fn held(&self) -> Held {
        let mut held = Held {
            prepared: u64::from(!self.prepared.is_empty()),
            ..Held::default()
        };
        for walk in self.session.tables() {
            let table = walk.table();
            let mut locks = self.prepared.iter().flat_map(|prepared| &prepared.rows);
            if locks.any(|lock| lock.table == table.id()) {
                held.locks = 1;
                held.locks_unlogged |= u64::from(!table.is_logged());
            }
            if table.row_count_estimate() == 0 {
                continue;
            }
            match table.persistence() {
                Persistence::Temporary => held.rows_temporary = 1,
                Persistence::Unlogged => held.rows_unlogged = 1,
                Persistence::Logged => held.rows_switched |= u64::from(table.key() == UNLOGGED),
            }
        }
        held
    }
}
