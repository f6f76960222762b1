//! The parent of a foreign key's rows: how a key's row is found and locked, kept from one check to
//! the next.
//!
//! What core's query does (`SELECT 1 FROM ONLY parent WHERE key = $1 FOR KEY SHARE`), without the
//! query: the parent's row is looked up in the index that the trigger names, by the scan of
//! compiled statements, and locked where that needs no waiting. The answer is "found and locked as
//! it was seen", or nothing. Whatever else there is, core's own check finds out, waits for, and
//! says.
use super::frame::{empty, within};
use super::index_lock::IndexLock;
use super::opened::{Entries, Opened};
use super::watch;
use crate::access::conditions::{Test, membership};
use crate::access::scan::Scan;
use crate::access::search::{Key, Search};
use crate::executor::expressions::Value;
use crate::keys::{Answer, IndexColumn};
use crate::pg::list::items;
use crate::pg::{self, executor, index_row, nodes, snapshot, version};
use crate::rows::lock_rows::lock_at_once;
use crate::rows::write::Target;
use crate::storage;
use crate::table_am::note_locked;
use crate::table_am::view::refuse_older_than_copy;
use crate::transaction::clock::PgSnapshot;
use crate::transaction::relation::{Relation, may_be_younger};
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
    values: *mut pg_sys::ExprContext,
    scan: Scan,
    target: Target,
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

impl ForeignKey {
    /// The one of an open child that a constraint is.
    unsafe fn find(child: pg_sys::Relation, constraint: pg_sys::Oid) -> Option<ForeignKey> {
        // SAFETY: the relation cache's list, which is read before anything else is asked.
        unsafe {
            let all = items::<pg_sys::ForeignKeyCacheInfo>(pg_sys::RelationGetFKeyList(child));
            let found = all.into_iter().find(|key| (**key).conoid == constraint)?;
            let key = &*found;
            let columns = (0..key.nkeys as usize)
                .map(|at| (key.conkey[at], key.confkey[at], key.conpfeqop[at]))
                .collect();
            Some(ForeignKey {
                parent: key.confrelid,
                columns,
            })
        }
    }

    /// How the parent's index is asked. `None`: it does not answer the constraint's own comparison.
    /// Locks it, if its row of the catalog does not rule it out.
    unsafe fn question(
        &self,
        (child, parent): (pg_sys::Relation, pg_sys::Relation),
        index: pg_sys::Oid,
    ) -> Option<Question> {
        // REINDEX CONCURRENTLY marks the old index before it waits for holders of table locks.
        if index_row::read(index, |_, row| row.indisvalid && row.indimmediate) != Some(true) {
            return None;
        }
        // SAFETY: the table is locked, so its index is there; open relations, and columns that they
        // have.
        unsafe {
            pg_sys::LockRelationOid(index, LOCK);
            Relation::closed(index).with(|opened| {
                let definition = storage::definition_of(opened)?;
                let shape = &*(*opened).rd_index;
                let numbers = shape.indkey.values.as_slice(shape.indnkeyatts as usize);
                let is_whole = definition.unique
                    && numbers.len() == self.columns.len()
                    && definition.columns.len() == numbers.len()
                    && self.columns.iter().all(|key| numbers.contains(&key.1));
                if !is_whole {
                    return None;
                }
                let part = |column: usize| {
                    let of_column = self.columns.iter().find(|key| key.1 == numbers[column]);
                    let &(own, referenced, operator) = of_column?;
                    let order =
                        IndexColumn::of(crate::pg::relation::Relation::enter(opened), column);
                    let kept = &nodes::attributes(parent)[referenced as usize - 1];
                    let given = &nodes::attributes(child)[own as usize - 1];
                    let member = membership(operator, order.family)?;
                    let answer =
                        order.answer_to_equality(&definition.columns[column], member.right)?;
                    let is_equality = member.strategy == Test::Equal as i32
                        && answer == Answer::Exact
                        && order.collation == kept.attcollation
                        && pg_sys::IsBinaryCoercible(given.atttypid, member.right);
                    let key = Key {
                        column,
                        test: Test::Equal,
                        argument_type: member.right,
                    };
                    is_equality.then_some((own, pg_sys::get_opcode(operator), key))
                };
                let parts: Option<Vec<_>> = (0..numbers.len()).map(part).collect();
                let parts = parts?;
                Some(Question {
                    columns: parts.iter().map(|part| part.0).collect(),
                    functions: parts.iter().map(|part| part.1).collect(),
                    search: Search {
                        index,
                        is_backward: false,
                        keys: parts.into_iter().map(|part| part.2).collect(),
                    },
                })
            })
        }
    }
}

impl Parent {
    /// Of the constraint that a trigger of an open child checks; `None`: core's query has to look.
    /// Locks the parent and the index. May raise.
    pub unsafe fn of(child: pg_sys::Relation, trigger: &pg_sys::Trigger) -> Option<Parent> {
        // SAFETY: an open table (caller), under whose lock no session drops the constraint, nor the
        // parent.
        unsafe {
            let key = ForeignKey::find(child, trigger.tgconstraint)?;
            pg_sys::LockRelationOid(key.parent, LOCK);
            Relation::closed(key.parent).with(|parent| {
                let class = &*(*parent).rd_rel;
                let is_temporary = class.relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP;
                let table = storage::find_of_method(parent).filter(|_| !is_temporary)?;
                let question = key.question((child, parent), trigger.tgconstrindid)?;
                Some(Parent::new(key.parent, class, table, question))
            })
        }
    }

    /// What looks rows up in a parent's index.
    unsafe fn new(
        oid: pg_sys::Oid,
        class: &pg_sys::FormData_pg_class,
        table: TableRef,
        question: Question,
    ) -> Parent {
        let keys = &question.search.keys;
        // SAFETY: memory of the parent's own, made when nothing raises any more but that memory is
        // out; a trigger is fired under a snapshot.
        unsafe {
            let snapshot = PgSnapshot::new(pg_sys::GetActiveSnapshot());
            let scan = Scan::of_table(oid, table, &question.search, &arguments(keys), snapshot);
            let context =
                pg::small_context(pg_sys::CacheMemoryContext, c"mot parent of a foreign key");
            let values = within(context, || {
                let values = pg_sys::CreateStandaloneExprContext();
                (*values).ecxt_param_list_info = parameters(keys);
                values
            });
            Parent {
                context,
                table: oid,
                index: question.search.index,
                table_lock: IndexLock::new(LOCK),
                index_lock: IndexLock::new(LOCK),
                owner: class.relowner,
                schema: class.relnamespace,
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
        // SAFETY: catalog look-ups, which may raise.
        let may = unsafe {
            let has = |right: u32| {
                let answer =
                    pg_sys::pg_class_aclcheck(self.table, self.owner, right as pg_sys::AclMode);
                answer == pg_sys::AclResult::ACLCHECK_OK
            };
            has(pg_sys::ACL_SELECT)
                && has(pg_sys::ACL_UPDATE)
                && version::may_use_schema(self.schema, self.owner)
                && self.functions.iter().all(|function| {
                    let answer = version::may_execute(*function, self.owner);
                    answer == pg_sys::AclResult::ACLCHECK_OK
                })
        };
        self.rights = if may { generation } else { 0 };
        may
    }

    /// Whether the parent of a filled row is there, as a snapshot of this moment sees it, and is
    /// locked now against changes of its key. Waits for no row. May raise.
    pub unsafe fn holds(&mut self, child: *mut pg_sys::TupleTableSlot) -> bool {
        // SAFETY: the caller's slot, of the row type that the constraint was looked up with; the
        // parent's own contexts.
        unsafe {
            empty((*self.values).ecxt_per_tuple_memory);
            if !self.fill(child) || self.is_younger_than_snapshot() {
                return false;
            }
            let snapshot = PgSnapshot::new(snapshot::push_latest());
            let is_held = within((*self.values).ecxt_per_tuple_memory, || self.look(snapshot));
            let found = self.scan.take_found();
            if is_held {
                self.count(found);
            }
            snapshot::pop();
            is_held
        }
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
    unsafe fn count(&mut self, found: u64) {
        // SAFETY: both are locked.
        unsafe {
            let opened = Opened::closed(&self.entries);
            let open = || Opened::open(self.table, self.index, &mut self.entries);
            let mut opened = opened.unwrap_or_else(open);
            opened.count_scan();
            opened.count_found(found);
            opened.close();
        }
    }

    /// Puts the child's values where the scan's parameters are; false: one is NULL.
    unsafe fn fill(&mut self, child: *mut pg_sys::TupleTableSlot) -> bool {
        // SAFETY: the caller's slot holds a tuple with the columns, and the list has a parameter
        // for each.
        unsafe {
            pg::take_row_apart(child, self.last_column.into());
            let slot = &*child;
            let list = (*self.values).ecxt_param_list_info;
            for (at, column) in self.columns.iter().enumerate() {
                let column = *column as usize - 1;
                if *slot.tts_isnull.add(column) {
                    return false;
                }
                let value = (*list).params.as_mut_ptr().add(at);
                (*value).value = *slot.tts_values.add(column);
            }
            true
        }
    }

    /// Looks the row up and locks it in the state that was seen, against changes of its key.
    unsafe fn look(&mut self, snapshot: PgSnapshot<'static>) -> bool {
        refuse_older_than_copy(self.scan.table, &snapshot);
        self.scan.rewind_under(snapshot);
        // SAFETY: the scan's arguments are parameters of this context.
        let found = unsafe { self.scan.next(self.values) };
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
unsafe fn parameters(keys: &[Key]) -> pg_sys::ParamListInfo {
    // SAFETY: a list of as many parameters, whose fields are plain.
    unsafe {
        let list = pg_sys::makeParamList(keys.len() as i32);
        for (at, key) in keys.iter().enumerate() {
            let parameter = &mut *(*list).params.as_mut_ptr().add(at);
            parameter.isnull = false;
            parameter.pflags = 0;
            parameter.ptype = key.argument_type;
        }
        list
    }
}

/// The scan's arguments: the parameters, by number.
fn arguments(keys: &[Key]) -> Vec<Value> {
    let argument = |(at, key): (usize, &Key)| {
        Value::Parameter(at as i32 + 1, key.argument_type, std::ptr::null_mut())
    };
    keys.iter().enumerate().map(argument).collect()
}
