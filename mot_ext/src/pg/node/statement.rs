//! Fields of utility statements and of their parts.
use super::{Any, List, Node, NodeType, Tagged, views};
use crate::pg::text;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char};

// SAFETY: a list begins with its tag.
unsafe impl NodeType for pg_sys::List {}
// SAFETY: lists of pointers have this tag, and lists of other things others.
unsafe impl Tagged for pg_sys::List {
    const TAG: pg_sys::NodeTag = pg_sys::NodeTag::T_List;
}

views! {
    PlannedStmt = T_PlannedStmt {
        node utilityStmt: pg_sys::Node,
    }
    RangeVar = T_RangeVar {
        value inh: bool,
        text schemaname,
    }
    DefElem = T_DefElem {
        string defname,
        has arg,
    }
    CreateStmt = T_CreateStmt {
        list tableElts: pg_sys::Node,
        list inhRelations: pg_sys::RangeVar,
        has partbound,
        has partspec,
        list options: pg_sys::DefElem,
        text accessMethod,
    }
    CreateForeignTableStmt = T_CreateForeignTableStmt {
        base base: pg_sys::CreateStmt,
        value servername: *mut c_char,
        list options: pg_sys::DefElem,
    }
    ColumnDef = T_ColumnDef {
        list fdwoptions: pg_sys::DefElem,
    }
    Constraint = T_Constraint {
        value contype: pg_sys::ConstrType::Type,
        value deferrable: bool,
        string indexname,
        text access_method,
    }
    CreateTableAsStmt = T_CreateTableAsStmt {
        node into: pg_sys::IntoClause,
    }
    IntoClause = T_IntoClause {
        string accessMethod,
        list options: pg_sys::DefElem,
    }
    IndexStmt = T_IndexStmt {
        node relation: pg_sys::RangeVar,
        text accessMethod,
        value concurrent: bool,
    }
    ReindexStmt = T_ReindexStmt {
        value kind: pg_sys::ReindexObjectType::Type,
        node relation: pg_sys::RangeVar,
        list params: pg_sys::DefElem,
    }
    AlterTableStmt = T_AlterTableStmt {
        node relation: pg_sys::RangeVar,
        list cmds: pg_sys::AlterTableCmd,
        field objtype: pg_sys::ObjectType::Type,
    }
    AlterTableCmd = T_AlterTableCmd {
        value subtype: pg_sys::AlterTableType::Type,
        string name,
        node def: pg_sys::Node,
    }
    PartitionCmd = T_PartitionCmd {
        node name: pg_sys::RangeVar,
    }
    AlterTableMoveAllStmt = T_AlterTableMoveAllStmt {
        value objtype: pg_sys::ObjectType::Type,
        value orig_tablespacename: *mut c_char,
        list roles: pg_sys::Node,
        value nowait: bool,
    }
    AlterObjectSchemaStmt = T_AlterObjectSchemaStmt {
        field objectType: pg_sys::ObjectType::Type,
        node relation: pg_sys::RangeVar,
    }
    RenameStmt = T_RenameStmt {
        field renameType: pg_sys::ObjectType::Type,
        field relationType: pg_sys::ObjectType::Type,
        node relation: pg_sys::RangeVar,
    }
    CommentStmt = T_CommentStmt {
        field objtype: pg_sys::ObjectType::Type,
        node object: pg_sys::Node,
    }
    SecLabelStmt = T_SecLabelStmt {
        field objtype: pg_sys::ObjectType::Type,
        node object: pg_sys::Node,
    }
    AlterExtensionContentsStmt = T_AlterExtensionContentsStmt {
        field objtype: pg_sys::ObjectType::Type,
        node object: pg_sys::Node,
    }
    DropStmt = T_DropStmt {
        cell removeType / set_kind: pg_sys::ObjectType::Type,
        value behavior: pg_sys::DropBehavior::Type,
        value concurrent: bool,
    }
    ViewStmt = T_ViewStmt {
        value replace: bool,
    }
    RefreshMatViewStmt = T_RefreshMatViewStmt {
        value concurrent: bool,
        node relation: pg_sys::RangeVar,
    }
    CreatedbStmt = T_CreatedbStmt {
        list options: pg_sys::DefElem,
    }
    CreateAmStmt = T_CreateAmStmt {
        list handler_name: pg_sys::Node,
    }
    EventTriggerData = T_EventTriggerData {
        node parsetree: pg_sys::Node,
    }
}

/// What a statement names.
macro_rules! named_relation {
    ($($of:ident),*) => {$(
        impl<'p> Node<'p, pg_sys::$of> {
            /// The name of the relation that it is about.
            pub fn table(self) -> Node<'p, pg_sys::RangeVar> {
                self.relation().expect("the grammar has a name there")
            }
        }
    )*};
}
named_relation!(AlterTableStmt, IndexStmt, RefreshMatViewStmt);

impl<'p> Node<'p, pg_sys::AlterTableCmd> {
    /// The name of a partition that is attached or detached.
    pub fn partition(self) -> Node<'p, pg_sys::RangeVar> {
        let partition = self.def().and_then(Any::cast::<pg_sys::PartitionCmd>);
        let name = partition.and_then(|partition| partition.name());
        name.expect("the grammar has a partition there")
    }

    /// The storage parameters that are set.
    pub fn options(self) -> List<'p, pg_sys::DefElem> {
        let list = match self.subtype() {
            pg_sys::AlterTableType::AT_SetRelOptions => self.def(),
            _ => None,
        };
        let list = list.filter(|list| list.tag() == pg_sys::NodeTag::T_List);
        // SAFETY: for this subcommand the grammar makes a list of options.
        unsafe { List::enter(list.map_or(std::ptr::null_mut(), |list| list.as_ptr().cast())) }
    }

    /// The number of the column in a table that it names; `None`: the table has none of that name.
    pub fn column_of(self, table: pg_sys::Oid) -> Option<i16> {
        let name = self.name()?;
        // SAFETY: a catalog look-up.
        let column = unsafe { pg_sys::get_attnum(table, name.as_ptr()) };
        (column > 0).then_some(column)
    }
}

impl<'p> Node<'p, pg_sys::CreateTableAsStmt> {
    /// What is made.
    pub fn made(self) -> Node<'p, pg_sys::IntoClause> {
        self.into().expect("the grammar has a table there")
    }
}

impl<'p> Node<'p, pg_sys::DropStmt> {
    /// The names of what is dropped, lists of their parts, where it is relations.
    pub fn names(self) -> List<'p, pg_sys::List> {
        // SAFETY: a live node.
        let objects = unsafe { List::<pg_sys::Node>::enter((*self.as_ptr()).objects) };
        assert!(
            objects
                .iter()
                .all(|name| name.tag() == pg_sys::NodeTag::T_List)
        );
        // SAFETY: a list of lists.
        unsafe { List::enter(objects.as_ptr()) }
    }

    /// Gives it other names.
    pub fn set_names(self, names: List<'p, pg_sys::List>) {
        // SAFETY: a live node; names as it has them.
        unsafe { (*self.as_ptr()).objects = names.as_ptr() };
    }
}

impl<'p> Node<'p, pg_sys::DefElem> {
    /// Whether it is an option of this name.
    pub fn is(self, name: &CStr) -> bool {
        self.defname() == Some(name)
    }

    /// Its name.
    pub fn name(self) -> String {
        // SAFETY: a live option.
        unsafe { text::from_c((*self.as_ptr()).defname) }
    }

    /// Its value as text.
    pub fn value(self) -> &'p CStr {
        // SAFETY: a live option; core raises for one without a value.
        unsafe { CStr::from_ptr(pg_sys::defGetString(self.as_ptr())) }
    }

    /// Its value as a truth value.
    pub fn is_true(self) -> bool {
        // SAFETY: a live option.
        unsafe { pg_sys::defGetBoolean(self.as_ptr()) }
    }
}
