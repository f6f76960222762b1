//! The parent of a foreign key's rows: how a key's row is found and locked, kept from one check to
//! the next.
//!
//! What core's query does (`SELECT 1 FROM ONLY parent WHERE key = $1 FOR KEY SHARE`), without the
//! query: the parent's row is looked up in the index that the trigger names, by the scan of
//! compiled statements, and locked where that needs no waiting. The answer is "found and locked as
//! it was seen", or nothing. Whatever else there is, core's own check finds out, waits for, and
//! says.
use super::frame::Row;
use super::index_lock::IndexLock;
use super::opened::{Entries, Opened};
use super::watch;
use crate::access::conditions::{Test, membership};
use crate::access::scan::Scan;
use crate::access::search::{Key, Search};
use crate::executor::expressions::Value;
use crate::keys::{Answer, IndexColumn};
use crate::pg::memory::{empty, within};
use crate::pg::node::{Node, Owned};
use crate::pg::relation;
use crate::pg::snapshot::Snapshot;
use crate::pg::{self, catalog, executor, index_row, snapshot, version};
use crate::rows::lock_rows::lock_at_once;
use crate::rows::write::Target;
use crate::storage;
use crate::table_am::note_locked;
use crate::table_am::view::refuse_older_than_copy;
use crate::transaction::clock::PgSnapshot;
use crate::transaction::relation::{LockedRelation, may_be_younger};
use mot_engine::key::KeyColumn;
use mot_engine::{LockStrength, TableRef};
use pgrx::pg_sys;
use std::ffi::c_int;

/// The lock that core's query takes on the parent and its index.
const LOCK: pg_sys::LOCKMODE = pg_sys::RowShareLock as pg_sys::LOCKMODE;

/// A foreign key's parent, and what looks its rows up.
pub struct Parent {
    /// Holds everything made here.
    context: pg_sys::MemoryContext,
    table: pg_sys::Oid,
    index: pg_sys::Oid,
    table_lock: IndexLock,
    index_lock: IndexLock,
    owner: pg_sys::Oid,
    schema: pg_sys::Oid,
    /// The functions by which core's query would compare.
    functions: Vec<pg_sys::Oid>,
    /// [`watch::rights`] when the owner was found to have the rights; 0: never.
    rights: u64,
    entries: Entries,
    /// Columns of the child, in the index's order.
    columns: Vec<i16>,
    /// The last of them in the child's row.
    last_column: i16,
    /// Their values, as the parameters of the scan.
    values: Owned<pg_sys::ExprContext>,
    scan: Scan,
    target: Target<'static>,
}

impl Drop for Parent {
    fn drop(&mut self) {
        // SAFETY: the parent's own context; no look-up uses it.
        unsafe { pg_sys::MemoryContextDelete(self.context) };
    }
}

/// A foreign key as the relation cache has it.
struct ForeignKey {
    parent: pg_sys::Oid,
    /// Column of the child, column of the parent, and the operator that compares them.
    columns: Vec<(i16, i16, pg_sys::Oid)>,
}

/// What an index is asked for a row of the child.
struct Question {
    /// Columns of the child, in the index's order.
    columns: Vec<i16>,
    /// The functions by which core's query would compare them.
    functions: Vec<pg_sys::Oid>,
    search: Search,
}

/// A column of an index that a foreign key refers to.
struct Part {
    /// The column of the child.
    own: i16,
    /// The function by which core's query would compare it.
    function: pg_sys::Oid,
    key: Key,
}

impl ForeignKey {
    /// The one of an open child that a constraint is.
    fn find(child: relation::Relation<'_>, constraint: pg_sys::Oid) -> Option<ForeignKey> {
        let mut all = child.foreign_keys();
        let key = all.find(|key| key.conoid == constraint)?;
        let columns = (0..key.nkeys as usize)
            .map(|at| (key.conkey[at], key.confkey[at], key.conpfeqop[at]))
            .collect();
        Some(ForeignKey {
            parent: key.confrelid,
            columns,
        })
    }

    /// How the parent's index is asked. `None`: it does not answer the constraint's own comparison.
    /// Locks it, if its row of the catalog does not rule it out. The parent is locked.
    fn question(
        &self,
        (child, parent): (relation::Relation<'_>, relation::Relation<'_>),
        index: pg_sys::Oid,
    ) -> Option<Question> {
        // REINDEX CONCURRENTLY marks the old index before it waits for holders of table locks.
        if index_row::read(index, |_, row| row.indisvalid && row.indimmediate) != Some(true) {
            return None;
        }
        catalog::lock(index, LOCK);
        let parts =
            LockedRelation::closed(index).with(|opened| self.parts((child, parent), opened))?;
        Some(Question {
            columns: parts.iter().map(|part| part.own).collect(),
            functions: parts.iter().map(|part| part.function).collect(),
            search: Search {
                index,
                is_backward: false,
                keys: parts.into_iter().map(|part| part.key).collect(),
            },
        })
    }

    /// What is asked of each column of an open index. `None`: it is not just the key's columns.
    fn parts(
        &self,
        tables: (relation::Relation<'_>, relation::Relation<'_>),
        index: relation::Relation<'_>,
    ) -> Option<Vec<Part>> {
        let definition = storage::definition_of(index)?;
        let keys = index.index_row().indnkeyatts as usize;
        let numbers = &index.index_columns()[..keys];
        let is_whole = definition.unique
            && numbers.len() == self.columns.len()
            && definition.columns.len() == numbers.len()
            && self.columns.iter().all(|key| numbers.contains(&key.1));
        if !is_whole {
            return None;
        }
        let columns = numbers.iter().zip(&definition.columns).enumerate();
        columns
            .map(|(column, (number, definition))| {
                let order = IndexColumn::of(index, column);
                self.part(tables, *number, (column, order, definition))
            })
            .collect()
    }

    /// What is asked of a column of the parent, which is one of an index. `None`: not the
    /// constraint's own comparison.
    fn part(
        &self,
        (child, parent): (relation::Relation<'_>, relation::Relation<'_>),
        number: i16,
        (column, order, definition): (usize, IndexColumn, &KeyColumn),
    ) -> Option<Part> {
        let of_column = self.columns.iter().find(|key| key.1 == number);
        let &(own, referenced, operator) = of_column?;
        let kept = &parent.description().columns()[referenced as usize - 1];
        let given = &child.description().columns()[own as usize - 1];
        let member = membership(operator, order.family)?;
        let answer = order.answer_to_equality(definition, member.right)?;
        let is_equality = member.strategy == Test::Equal as i32
            && answer == Answer::Exact
            && order.collation == kept.attcollation
            && catalog::is_binary_coercible(given.atttypid, member.right);
        is_equality.then_some(Part {
            own,
            function: catalog::operator_function(operator),
            key: Key {
                column,
                test: Test::Equal,
                argument_type: order.converted_from(member.right),
            },
        })
    }
}

impl Parent {
    /// Of the constraint that a trigger of an open child checks, under whose lock no session drops
    /// the constraint, nor the parent; `None`: core's query has to look. Locks the parent and the
    /// index. May raise.
    pub fn of(child: relation::Relation<'_>, trigger: Node<'_, pg_sys::Trigger>) -> Option<Parent> {
        let index = trigger.tgconstrindid();
        let key = ForeignKey::find(child, trigger.tgconstraint())?;
        catalog::lock(key.parent, LOCK);
        LockedRelation::closed(key.parent).with(|parent| {
            let is_temporary = parent.persistence() == pg_sys::RELPERSISTENCE_TEMP;
            let table = storage::find_of_method(parent).filter(|_| !is_temporary)?;
            let question = key.question((child, parent), index)?;
            Some(Parent::new(parent, table, question))
        })
    }

    /// What looks rows up in a parent's index. A trigger is fired under a snapshot.
    fn new(parent: relation::Relation<'_>, table: TableRef, question: Question) -> Parent {
        let (oid, keys) = (parent.oid(), &question.search.keys);
        // SAFETY: it is active; each look-up has its own.
        let snapshot = PgSnapshot::new(unsafe { Snapshot::enter(pg::active_snapshot()) });
        let scan = Scan::of_table(oid, table, &question.search, &arguments(keys), snapshot);
        // Nothing raises any more but that memory is out.
        // SAFETY: memory of the parent's own, which `drop` deletes.
        let (context, values) = unsafe {
            let context =
                pg::small_context(pg_sys::CacheMemoryContext, c"mot parent of a foreign key");
            (context, within(context, || values(keys)))
        };
        let (owner, schema) = parent.owner_and_schema();
        Parent {
            context,
            table: oid,
            index: question.search.index,
            table_lock: IndexLock::new(LOCK),
            index_lock: IndexLock::new(LOCK),
            owner,
            schema,
            functions: question.functions,
            rights: 0,
            entries: Entries::NONE,
            last_column: question.columns.iter().copied().max().unwrap_or(0),
            columns: question.columns,
            values,
            scan,
            target: Target::closed(oid, table),
        }
    }

    /// Locks the parent and its index, as core's query does.
    pub fn lock(&self) {
        self.table_lock.take(self.table);
        self.index_lock.take(self.index);
    }

    /// Whether the parent's owner, whose rights count, may see and lock its rows. Where not, core's
    /// query raises that.
    pub fn owner_may_look(&mut self) -> bool {
        if executor::has_rights_hook() {
            return false;
        }
        let generation = watch::rights();
        if self.rights == generation {
            return true;
        }
        let may = catalog::may(self.table, self.owner, pg_sys::ACL_SELECT)
            && catalog::may(self.table, self.owner, pg_sys::ACL_UPDATE)
            && version::may_use_schema(self.schema, self.owner)
            && self.functions.iter().all(|function| {
                let answer = version::may_execute(*function, self.owner);
                answer == pg_sys::AclResult::ACLCHECK_OK
            });
        self.rights = if may { generation } else { 0 };
        may
    }

    /// Whether the parent of a filled row is there, as a snapshot of this moment sees it, and is
    /// locked now against changes of its key. Waits for no row. May raise.
    ///
    /// # Safety
    /// It is locked. A slot of the row type that the constraint was looked up with.
    pub unsafe fn holds(&mut self, child: Row<'_>) -> bool {
        let memory = self.values.view().ecxt_per_tuple_memory();
        // SAFETY: the parent's own context; the look-up before has ended. The caller's slot.
        let is_filled = unsafe {
            empty(memory);
            self.fill(child)
        };
        if !is_filled || self.is_younger_than_snapshot() {
            return false;
        }
        // SAFETY: the parent's own context, as above; the snapshot is active until `pop`.
        let is_held = unsafe {
            let snapshot = PgSnapshot::new(Snapshot::enter(snapshot::push_latest()));
            within(memory, || self.look(snapshot))
        };
        let found = self.scan.take_found();
        if is_held {
            // SAFETY: both are locked (caller).
            unsafe { self.count(found) };
        }
        // SAFETY: the snapshot from above.
        unsafe { snapshot::pop() };
        is_held
    }

    /// Whether the index may show the transaction's one snapshot a row that has another key there:
    /// a state from before the index was made. Core's plan does without such an index.
    fn is_younger_than_snapshot(&self) -> bool {
        // SAFETY: a plain variable of this process.
        let has_one_snapshot =
            unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as c_int };
        has_one_snapshot && may_be_younger(self.index)
    }

    /// Counts a scan, as core counts one that its query makes.
    ///
    /// # Safety
    /// The table and the index are locked.
    unsafe fn count(&mut self, found: u64) {
        let opened = Opened::closed(&self.entries);
        // SAFETY: the caller's locks.
        let open = || unsafe { Opened::open(self.table, self.index, &mut self.entries) };
        let mut opened = opened.unwrap_or_else(open);
        opened.count_scan();
        opened.count_found(found);
        // SAFETY: opened above, if it is open.
        unsafe { opened.close() };
    }

    /// Puts the child's values where the scan's parameters are; false: one is NULL.
    ///
    /// # Safety
    /// As for [`Parent::holds`].
    unsafe fn fill(&self, child: Row<'_>) -> bool {
        // SAFETY: the caller's slot, which nobody changes meanwhile.
        let (values, nulls) = unsafe {
            child.take_apart(self.last_column.into());
            child.columns()
        };
        let value = |column: &i16| {
            let column = *column as usize - 1;
            (!nulls[column]).then(|| values[column])
        };
        // SAFETY: the list has a parameter for each column.
        unsafe { (self.values.view()).fill_parameters(self.columns.iter().map(value)) }
    }

    /// Looks the row up and locks it in the state that was seen, against changes of its key.
    ///
    /// # Safety
    /// The parameters are filled, with values that are live.
    unsafe fn look(&mut self, snapshot: PgSnapshot<'static>) -> bool {
        refuse_older_than_copy(self.scan.table, &snapshot);
        self.scan.rewind_under(snapshot);
        // SAFETY: the scan's arguments are parameters of this context.
        let found = unsafe { self.scan.next(self.values.as_ptr()) };
        let is_held = found.is_some_and(|(row, version)| {
            let is_held = lock_at_once(&self.target, row, version, LockStrength::KeyShare);
            if is_held {
                note_locked(self.target.table, row);
            }
            is_held
        });
        self.scan.end();
        is_held
    }
}

/// A list of parameters, one for each key, in the current context.
fn parameters(keys: &[Key]) -> pg_sys::ParamListInfo {
    // SAFETY: the list has a place for each parameter.
    let (list, first) = unsafe {
        let list = pg_sys::makeParamList(keys.len() as i32);
        (list, (*list).params.as_mut_ptr())
    };
    for (at, key) in keys.iter().enumerate() {
        let parameter = pg_sys::ParamExternData {
            value: pg_sys::Datum::null(),
            isnull: false,
            pflags: 0,
            ptype: key.argument_type,
        };
        // SAFETY: as above.
        unsafe { first.add(at).write(parameter) };
    }
    list
}

/// A context for expressions with a parameter for each key.
///
/// # Safety
/// The current memory context lives as long as the value.
unsafe fn values(keys: &[Key]) -> Owned<pg_sys::ExprContext> {
    // SAFETY: a context and a list just made, in the caller's memory context.
    unsafe {
        let values = Owned::new(pg_sys::CreateStandaloneExprContext());
        values.view().set_parameters(parameters(keys));
        values
    }
}

/// The scan's arguments: the parameters, by number.
fn arguments(keys: &[Key]) -> Vec<Value> {
    let argument = |(at, key): (usize, &Key)| {
        Value::Parameter(at as i32 + 1, key.argument_type, std::ptr::null_mut())
    };
    keys.iter().enumerate().map(argument).collect()
}
