//! Differences from heap tables that are none: each with its reason. What is not listed here is a
//! bug.

use super::statement::Statement;
use crate::history::record::Level;
use crate::wire::Answer;

/// A difference that is allowed.
#[derive(Debug, PartialEq, Eq)]
pub struct Allowed {
    pub name: &'static str,
    pub reason: &'static str,
}

pub static FINER_PREDICATE_LOCKS: Allowed = Allowed {
    name: "40001 on one side under SERIALIZABLE",
    reason: "Predicate locks of a heap table are pages of its btrees, of a MOT table ranges of keys \
        (docs/isolation.md), so each side fails \
             for dependencies that the other tells apart. Which anomalies are missed is not to be learned \
             here; the histories tell.",
};

pub static ORDER_OF_ROWS: Allowed = Allowed {
    name: "a statement over several rows waits on one side only",
    reason: "A statement locks its rows in the order of its plan, and the plans differ: so does what it holds \
        while it waits for another \
             row, and which row it waits for or fails at first.",
};

pub static ROW_TAKEN_BACK: Allowed = Allowed {
    name: "a statement waits on one side only, beside an INSERT that waits without its row",
    reason: "While it waits for another inserter of one of its keys, an INSERT ... ON CONFLICT has taken its \
        new row back on a MOT table \
             (two such statements would wait for each other otherwise). So has an INSERT into an index whose \
             keys are labels, which no \
             other writer may add to meanwhile. On a heap table the row may stay, and a third inserter of \
             another of its keys waits for \
             it.",
};

pub static FIRST_ERROR: Allowed = Allowed {
    name: "a statement over several rows fails for another of them",
    reason: "Several rows break a rule; the first one in the order of the plan is reported. Both sides fail.",
};

pub static KEY_FREED: Allowed = Allowed {
    name: "a MERGE of several rows meets a key before or after it has freed it",
    reason: "Keys are unique at each row, not at the end of the statement. A MERGE that deletes or changes a \
        row and inserts another one with \
             its key succeeds if the plan has the first one first, and fails if not.",
};

pub static INDEX_IN_USE: Allowed = Allowed {
    name: "55006 on one side: a cursor of the session reads the index",
    reason: "An index cannot be built anew under a cursor that reads it. Which cursors read it, and which sort \
        the table, is up to the plans.",
};

pub static REINDEX_LOCKS: Allowed = Allowed {
    name: "a row lock or a change waits on one side only, beside a REINDEX",
    reason: "REINDEX of an index that keeps its keys with the rows locks the table in EXCLUSIVE mode, \
             with which row locks conflict (docs/differences.md). So it waits for the table where that of a \
             heap table has locked it, and waits for the index.",
};

pub static SORTED_CURSOR: Allowed = Allowed {
    name: "24000 on one side: the cursor's plan sorts",
    reason: "WHERE CURRENT OF takes a cursor without FOR UPDATE only if its plan shows rows of the table \
             itself, not sorted ones. Whether an ORDER BY sorts is up to the plan.",
};

pub static CHECK_BY_INDEX: Allowed = Allowed {
    name: "a check of a foreign key waits on one side only, beside a REINDEX INDEX",
    reason: "The kept plan of such a check reads the other table by the index, or all of a small one: the \
        plans decide.",
};

pub static ROWS_FILLED: Allowed = Allowed {
    name: "an old snapshot, and rows that a definition has changed since",
    reason: "A new column's default is written into the rows of a MOT table, as by a heap table's rewrite; a \
        heap table keeps a constant one in the \
             catalog. To another transaction with an older snapshot such a row has changed: it reads the row \
             as it was, with NULL in the new column, and cannot \
             change it (40001). To the one that did it all rows are its own, those too that its snapshot did not see.",
};

fn state(answer: &Answer) -> Option<&str> {
    answer
        .refusal
        .as_ref()
        .map(|refusal| refusal.state.as_str())
}

/// What is known of a session's transaction, and of those beside it.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Of the transaction, or of the next statement.
    pub level: Level,
    /// It has filled a new column of rows that were there.
    pub fills: bool,
    /// Another one has since it began.
    pub filled_beside: bool,
}

impl Known {
    /// Of a session without a transaction.
    pub const NOTHING: Known = Known {
        level: Level::ReadCommitted,
        fills: false,
        filled_beside: false,
    };
}

/// Two answers that differ: whether they may.
pub fn answers(
    statement: &Statement,
    known: &Known,
    heap: &Answer,
    mot: &Answer,
) -> Option<&'static Allowed> {
    let &Known {
        level,
        fills,
        filled_beside,
        ..
    } = known;
    let (heap, mot) = (state(heap), state(mot));
    let is_conflict = |state: Option<&str>| state == Some("40001");
    if level == Level::Serializable && is_conflict(heap) != is_conflict(mot) {
        return Some(&FINER_PREDICATE_LOCKS);
    }
    let is_refused = filled_beside && is_conflict(mot);
    let are_rows = (fills || filled_beside) && mot.is_none();
    if level != Level::ReadCommitted && heap.is_none() && (is_refused || are_rows) {
        return Some(&ROWS_FILLED);
    }
    let breaks_rule = |state: Option<&str>| {
        state.is_some_and(|state| {
            state.starts_with("23")
                || ["21000", "40001", "44000", "55P03", "P0001"].contains(&state)
        })
    };
    if statement.locks_several && breaks_rule(heap) && breaks_rule(mot) {
        return Some(&FIRST_ERROR);
    }
    let is_on_one_side = |refusal: &str| match (heap, mot) {
        (Some(state), None) | (None, Some(state)) => state == refusal,
        _ => false,
    };
    if statement.text.starts_with("REINDEX INDEX ") && is_on_one_side("55006") {
        return Some(&INDEX_IN_USE);
    }
    if statement.text.contains(" CURRENT OF ") && is_on_one_side("24000") {
        return Some(&SORTED_CURSOR);
    }
    let frees_and_takes = statement.text.starts_with("MERGE INTO ")
        && statement.text.contains(" WHEN MATCHED ")
        && statement.text.contains(" THEN INSERT ");
    if statement.locks_several && frees_and_takes && is_on_one_side("23505") {
        return Some(&KEY_FREED);
    }
    None
}

/// One side waits and the other has answered, while `beside` waits in another session: whether that
/// may be.
pub fn waits(
    statement: &Statement,
    beside: Option<&Statement>,
    known: &Known,
    answered: &Answer,
) -> Option<&'static Allowed> {
    if known.level == Level::Serializable && state(answered) == Some("40001") {
        return Some(&FINER_PREDICATE_LOCKS);
    }
    if statement.locks_several {
        return Some(&ORDER_OF_ROWS);
    }
    let is_elsewhere = |beside: &Statement| {
        // A value may contain the name, behind a quote.
        let index = beside.text.strip_prefix("REINDEX INDEX ");
        let table = index.and_then(|index| index.split('_').next());
        table.is_some_and(|table| !statement.text.contains(&format!(" {table}")))
    };
    if beside.is_some_and(is_elsewhere) {
        return Some(&CHECK_BY_INDEX);
    }
    let locks_rows = [
        " FOR UPDATE",
        " FOR NO KEY UPDATE",
        " FOR SHARE",
        " FOR KEY SHARE",
    ];
    let changes = ["INSERT ", "UPDATE ", "DELETE ", "MERGE "];
    let mut parts = locks_rows.iter().chain(&changes);
    let locks_rows = parts.any(|part| statement.text.contains(part));
    if locks_rows && beside.is_some_and(|beside| beside.text.starts_with("REINDEX ")) {
        return Some(&REINDEX_LOCKS);
    }
    // Types of users with a btree class are in this schema.
    let has_labels = |text: &str| text.contains("INSERT ") && text.contains("::d_types.");
    beside
        .is_some_and(|beside| beside.text.contains(" ON CONFLICT ") || has_labels(&beside.text))
        .then_some(&ROW_TAKEN_BACK)
}
