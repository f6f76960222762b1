//! Logical decoding: changes in the reorder buffer, and the files that they name.
use super::table_am::FileName;
use crate::pg::relation::Relation;
use mot_engine::log::FileLocator;
use pgrx::pg_sys;

/// How a change holds one of its tuples.
#[cfg(feature = "pg15")]
pub type LogicalTuple = *mut pg_sys::ReorderBufferTupleBuf;
/// How a change holds one of its tuples.
#[cfg(not(feature = "pg15"))]
pub type LogicalTuple = pg_sys::HeapTuple;

/// A relation's file, as the log names it.
pub fn locator(relation: Relation<'_>) -> FileLocator {
    // SAFETY: an open relation.
    let entry = unsafe { &*relation.as_ptr() };
    #[cfg(feature = "pg15")]
    return FileLocator {
        database: entry.rd_node.dbNode.to_u32(),
        tablespace: entry.rd_node.spcNode.to_u32(),
        file: entry.rd_node.relNode.to_u32(),
    };
    #[cfg(not(feature = "pg15"))]
    FileLocator {
        database: entry.rd_locator.dbOid.to_u32(),
        tablespace: entry.rd_locator.spcOid.to_u32(),
        file: entry.rd_locator.relNumber.to_u32(),
    }
}

fn file_name(table: FileLocator) -> FileName {
    #[cfg(feature = "pg15")]
    return FileName {
        spcNode: table.tablespace.into(),
        dbNode: table.database.into(),
        relNode: table.file.into(),
    };
    #[cfg(not(feature = "pg15"))]
    FileName {
        spcOid: table.tablespace.into(),
        dbOid: table.database.into(),
        relNumber: table.file.into(),
    }
}

/// A new change of a row of a table, without tuples.
///
/// # Safety
/// A decoding's buffer.
pub unsafe fn new_logical_change(
    reorder: *mut pg_sys::ReorderBuffer,
    table: FileLocator,
) -> *mut pg_sys::ReorderBufferChange {
    // SAFETY: the caller's buffer; a new change is zeroed.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        let change = pg_sys::ReorderBufferGetChange(reorder);
        #[cfg(feature = "pg18")]
        let change = pg_sys::ReorderBufferAllocChange(reorder);
        #[cfg(feature = "pg15")]
        {
            (*change).data.tp.relnode = file_name(table);
        }
        #[cfg(not(feature = "pg15"))]
        {
            (*change).data.tp.rlocator = file_name(table);
        }
        change
    }
}

/// A new tuple in a place of a change, with room for so many bytes behind a header.
///
/// # Safety
/// A decoding's buffer, whose change the place is of.
pub unsafe fn new_logical_tuple(
    reorder: *mut pg_sys::ReorderBuffer,
    bytes: usize,
    place: &mut LogicalTuple,
) -> pg_sys::HeapTuple {
    // SAFETY: the caller's buffer.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        let made = pg_sys::ReorderBufferGetTupleBuf(reorder, bytes);
        #[cfg(feature = "pg18")]
        let made = pg_sys::ReorderBufferAllocTupleBuf(reorder, bytes);
        *place = made;
        #[cfg(feature = "pg15")]
        return &raw mut (*made).tuple;
        #[cfg(not(feature = "pg15"))]
        made
    }
}
