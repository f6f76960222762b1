//! What a script may do, and how scripts are drawn.

use super::common::Row;
use mot_engine::LockStrength;
use proptest::prelude::*;

pub(super) const TRANSACTIONS: usize = 4;
pub(super) const SNAPSHOTS: usize = 3;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Insert {
        t: usize,
        row: Row,
        retract: bool,
    },
    Update {
        t: usize,
        pick: usize,
        row: Row,
    },
    /// Changes no key.
    Touch {
        t: usize,
        pick: usize,
    },
    Delete {
        t: usize,
        pick: usize,
    },
    Lock {
        t: usize,
        pick: usize,
        strength: LockStrength,
    },
    Savepoint {
        t: usize,
    },
    RollbackTo {
        t: usize,
    },
    Release {
        t: usize,
    },
    /// PostgreSQL's decision; the engine hears of it with `Finish`.
    Decide {
        t: usize,
        commit: bool,
        log: bool,
    },
    Finish {
        t: usize,
    },
    Hold {
        at: usize,
    },
    Let {
        at: usize,
    },
    Sweep,
    Check,
}

fn rows() -> impl Strategy<Value = Row> {
    (0..8, 0..4, proptest::option::of(0..6)).prop_map(|(a, b, c)| Row { a, b, c })
}

pub(super) fn steps() -> impl Strategy<Value = Step> {
    let t = 0..TRANSACTIONS;
    let strength = prop_oneof![
        Just(LockStrength::KeyShare),
        Just(LockStrength::Share),
        Just(LockStrength::NoKeyUpdate),
        Just(LockStrength::Update)
    ];
    prop_oneof![
        8 => (t.clone(), rows(), any::<bool>()).prop_map(|(t, row, retract)| Step::Insert { t, row, retract }),
        8 => (t.clone(), any::<usize>(), rows()).prop_map(|(t, pick, row)| Step::Update { t, pick, row }),
        5 => (t.clone(), any::<usize>()).prop_map(|(t, pick)| Step::Touch { t, pick }),
        5 => (t.clone(), any::<usize>()).prop_map(|(t, pick)| Step::Delete { t, pick }),
        4 => (t.clone(), any::<usize>(), strength).prop_map(|(t, pick, strength)| Step::Lock { t, pick, strength }),
        3 => t.clone().prop_map(|t| Step::Savepoint { t }),
        2 => t.clone().prop_map(|t| Step::RollbackTo { t }),
        1 => t.clone().prop_map(|t| Step::Release { t }),
        5 => (t.clone(), prop_oneof![3 => Just(true), 1 => Just(false)], any::<bool>())
            .prop_map(|(t, commit, log)| Step::Decide { t, commit, log }),
        6 => t.prop_map(|t| Step::Finish { t }),
        2 => (0..SNAPSHOTS).prop_map(|at| Step::Hold { at }),
        2 => (0..SNAPSHOTS).prop_map(|at| Step::Let { at }),
        3 => Just(Step::Sweep),
        1 => Just(Step::Check),
    ]
}
