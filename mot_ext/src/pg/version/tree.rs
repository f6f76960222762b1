//! Core's walks over queries and expressions, and what makes nodes, without pgrx's guards.
//!
//! A guard for each node would take a multiple of core's own stack. So a callback is a plain frame,
//! and so is their caller: an error of core jumps over both. A guarded call has no place there:
//! it would make the error a panic, which cannot pass core's frames.
#![allow(ffi_unwind_calls)]
use crate::pg::node::{Any, Node, NodeType, Tagged};
use pgrx::pg_sys;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;

/// `SQLlanguageId` of `catalog/pg_language.h`.
const SQL_LANGUAGE: u32 = 14;

/// Visits a node; true ends the walk.
pub type Look = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

/// Makes a node into another one, or a copy.
pub type Change = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> *mut pg_sys::Node;

unsafe extern "C-unwind" {
    #[cfg_attr(feature = "pg15", link_name = "expression_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
    fn walk_expression(node: *mut pg_sys::Node, look: Look, context: *mut c_void) -> bool;
    #[cfg_attr(feature = "pg15", link_name = "query_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_walker_impl")]
    fn walk_query(
        query: *mut pg_sys::Query,
        look: Look,
        context: *mut c_void,
        flags: c_int,
    ) -> bool;
    #[cfg_attr(feature = "pg15", link_name = "expression_tree_mutator")]
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_mutator_impl")]
    fn change_expression(
        node: *mut pg_sys::Node,
        change: Change,
        context: *mut c_void,
    ) -> *mut pg_sys::Node;
    #[cfg_attr(feature = "pg15", link_name = "query_tree_mutator")]
    #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_mutator_impl")]
    fn change_query(
        query: *mut pg_sys::Query,
        change: Change,
        context: *mut c_void,
        flags: c_int,
    ) -> *mut pg_sys::Query;
    #[link_name = "palloc0"]
    fn allocate_zeroed(bytes: usize) -> *mut c_void;
    #[link_name = "copyObjectImpl"]
    fn copy_node(node: *const c_void) -> *mut c_void;
    #[link_name = "lappend"]
    fn append(list: *mut pg_sys::List, item: *mut c_void) -> *mut pg_sys::List;
    #[link_name = "cstring_to_text"]
    fn make_text(text: *const c_char) -> *mut c_void;
    #[link_name = "get_namespace_oid"]
    fn find_schema(name: *const c_char, missing_ok: bool) -> pg_sys::Oid;
    #[link_name = "buildoidvector"]
    fn vector_of_oids(oids: *const pg_sys::Oid, count: c_int) -> *mut pg_sys::oidvector;
    #[link_name = "GetSysCacheOid"]
    fn find_in_catalog(
        cache: c_int,
        column: pg_sys::AttrNumber,
        key1: pg_sys::Datum,
        key2: pg_sys::Datum,
        key3: pg_sys::Datum,
        key4: pg_sys::Datum,
    ) -> pg_sys::Oid;
    #[link_name = "getExtensionOfObject"]
    fn extension_of(class: pg_sys::Oid, object: pg_sys::Oid) -> pg_sys::Oid;
    #[link_name = "get_extension_oid"]
    fn find_extension(name: *const c_char, missing_ok: bool) -> pg_sys::Oid;
    #[link_name = "SearchSysCache1"]
    fn look_up(cache: c_int, key: pg_sys::Datum) -> pg_sys::HeapTuple;
    #[link_name = "SysCacheGetAttr"]
    fn column_of(
        cache: c_int,
        row: pg_sys::HeapTuple,
        column: pg_sys::AttrNumber,
        is_null: *mut bool,
    ) -> pg_sys::Datum;
    #[link_name = "ReleaseSysCache"]
    fn release(row: pg_sys::HeapTuple);
    #[link_name = "text_to_cstring"]
    fn make_string(text: *const c_void) -> *mut c_char;
    #[link_name = "pfree"]
    fn free(memory: *mut c_void);
    /// The C library's: a part of a text, in capitals or not.
    fn strcasestr(text: *const c_char, part: *const c_char) -> *mut c_char;
    #[link_name = "get_atttypetypmodcoll"]
    fn type_of_column(
        relation: pg_sys::Oid,
        column: pg_sys::AttrNumber,
        of: *mut pg_sys::Oid,
        modifier: *mut i32,
        collation: *mut pg_sys::Oid,
    );
    #[link_name = "get_am_oid"]
    fn find_method(name: *const c_char, missing_ok: bool) -> pg_sys::Oid;
}

/// A promise that lets safe code call core without guards: an error of core may jump over the frame
/// that has it. It also lets that make nodes, for the time `'p`.
#[derive(Clone, Copy)]
pub struct PlainFrame<'p>(PhantomData<(&'p (), *mut ())>);

impl<'p> PlainFrame<'p> {
    /// # Safety
    /// All frames between core's and those that use it are plain, with nothing to drop. A
    /// transaction is under way, and the current memory context outlives `'p`.
    pub unsafe fn enter() -> PlainFrame<'p> {
        PlainFrame(PhantomData)
    }

    /// A node in the current memory context. Fields of it that are not set are zero.
    ///
    /// # Safety
    /// Pointers among the fields lead to what the type says, and are live for `'p`.
    pub unsafe fn node<T: Tagged>(self, fields: T) -> Node<'p, T> {
        // SAFETY: memory of the type's size, filled here.
        unsafe {
            let node = allocate_zeroed(size_of::<T>()).cast::<T>();
            node.write(fields);
            (*node.cast::<pg_sys::Node>()).type_ = T::TAG;
            Node::enter(node)
        }
    }

    /// A copy of a node.
    pub fn copied<T: NodeType>(self, node: Node<'_, T>) -> Node<'p, T> {
        // SAFETY: a live node; the copy is one of the same type.
        unsafe { Node::enter(copy_node(node.as_ptr().cast()).cast()) }
    }

    /// A list of nodes, of an iterator with nothing to drop.
    pub fn list(self, nodes: impl IntoIterator<Item = Any<'p>>) -> *mut pg_sys::List {
        let mut list = std::ptr::null_mut();
        for node in nodes {
            // SAFETY: live nodes, and a list of such.
            list = unsafe { append(list, node.as_ptr().cast()) };
        }
        list
    }

    /// A constant of this type, width and collation, which is not NULL.
    pub fn constant(
        self,
        (of, width, collation): (pg_sys::Oid, i32, pg_sys::Oid),
        value: pg_sys::Datum,
        is_by_value: bool,
    ) -> Any<'p> {
        let constant = pg_sys::Const {
            consttype: of,
            consttypmod: -1,
            constcollid: collation,
            constlen: width,
            constvalue: value,
            constbyval: is_by_value,
            location: -1,
            ..Default::default()
        };
        // SAFETY: it has no pointers but the value, which the caller gives with its type.
        unsafe { self.node(constant) }.any()
    }

    /// NULL of a type of any width.
    pub fn null(self, of: pg_sys::Oid) -> Any<'p> {
        let constant = pg_sys::Const {
            consttype: of,
            consttypmod: -1,
            constlen: -1,
            constisnull: true,
            location: -1,
            ..Default::default()
        };
        // SAFETY: it has no pointers.
        unsafe { self.node(constant) }.any()
    }

    /// A column of the table whose whole row a node is: of this relation, which has the column.
    pub fn column_of_row(
        self,
        row: Node<'_, pg_sys::Var>,
        relation: pg_sys::Oid,
        number: pg_sys::AttrNumber,
    ) -> Node<'p, pg_sys::Var> {
        let copy = self.copied(row);
        let column = copy.as_ptr();
        // SAFETY: the copy's own fields, and a look-up in the catalog.
        unsafe {
            (*column).varattno = number;
            (*column).varattnosyn = number;
            type_of_column(
                relation,
                number,
                &raw mut (*column).vartype,
                &raw mut (*column).vartypmod,
                &raw mut (*column).varcollid,
            );
        }
        copy
    }

    /// A text as core has it.
    pub fn text(self, text: &CStr) -> pg_sys::Datum {
        // SAFETY: a string.
        unsafe { pg_sys::Datum::from(make_text(text.as_ptr())) }
    }

    /// The oid of an access method; invalid if there is none of this name.
    pub fn access_method(self, name: &CStr) -> pg_sys::Oid {
        // SAFETY: a string.
        unsafe { find_method(name.as_ptr(), true) }
    }

    /// The oid of a function of these argument types in a schema; invalid if there is none.
    pub fn function(self, schema: &CStr, name: &CStr, arguments: &[pg_sys::Oid]) -> pg_sys::Oid {
        // SAFETY: strings, a list of oids, and a cache's keys in its own order.
        unsafe {
            let schema = find_schema(schema.as_ptr(), true);
            if schema == pg_sys::InvalidOid {
                return schema;
            }
            let types = vector_of_oids(arguments.as_ptr(), arguments.len() as c_int);
            find_in_catalog(
                pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as c_int,
                pg_sys::Anum_pg_proc_oid as pg_sys::AttrNumber,
                pg_sys::Datum::from(name.as_ptr()),
                pg_sys::Datum::from(types),
                pg_sys::Datum::from(schema),
                pg_sys::Datum::from(0usize),
            )
        }
    }

    /// Whether a function belongs to an extension. Any user may make one of the same name where the
    /// extension is not there.
    pub fn is_of_extension(self, function: pg_sys::Oid, extension: &CStr) -> bool {
        // SAFETY: a string and oids.
        unsafe {
            let extension = find_extension(extension.as_ptr(), true);
            extension != pg_sys::InvalidOid
                && extension_of(pg_sys::ProcedureRelationId, function) == extension
        }
    }
}

/// Whether a function is an SQL function, and its text or its parse tree has one of these parts.
///
/// # Safety
/// The caller is a plain frame, inside a transaction.
pub unsafe fn sql_function_has(function: pg_sys::Oid, parts: &[&CStr]) -> bool {
    let cache = pg_sys::SysCacheIdentifier::PROCOID as c_int;
    // SAFETY: a row of the catalog while it is held; its columns of texts, as strings of our own.
    unsafe {
        let row = look_up(cache, pg_sys::Datum::from(function));
        if row.is_null() {
            return false;
        }
        let form = &*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_proc>(row);
        let mut has = false;
        if form.prolang.to_u32() == SQL_LANGUAGE {
            for column in [pg_sys::Anum_pg_proc_prosrc, pg_sys::Anum_pg_proc_prosqlbody] {
                let mut is_null = false;
                let text = column_of(cache, row, column as pg_sys::AttrNumber, &raw mut is_null);
                if is_null {
                    continue;
                }
                let text = make_string(text.cast_mut_ptr());
                has |= parts
                    .iter()
                    .any(|part| !strcasestr(text, part.as_ptr()).is_null());
                free(text.cast());
            }
        }
        release(row);
        has
    }
}

/// Calls `look` for the parts of an expression, or of a query.
///
/// # Safety
/// A node that core's walker knows, and the context of the walk. The caller is a plain frame.
pub unsafe fn look_below(node: *mut pg_sys::Node, look: Look, context: *mut c_void) -> bool {
    // SAFETY: the caller's.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_Query => walk_query(node.cast(), look, context, 0),
            _ => walk_expression(node, look, context),
        }
    }
}

/// A copy of an expression, or of a query, whose parts are what `change` makes of them.
///
/// # Safety
/// As of [`look_below`].
pub unsafe fn change_below(
    node: *mut pg_sys::Node,
    change: Change,
    context: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: the caller's.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_Query => change_query(node.cast(), change, context, 0).cast(),
            _ => change_expression(node, change, context),
        }
    }
}
