//! Text for a resource manager's rm_desc and rm_identify: what pg_waldump and error contexts show.
//!
//! Contract: total; damage is described, not raised.

use std::fmt::Write;

use super::{
    Change, DefinitionChange, KeysReader, LOG_HEADER_BYTES, LocksReader, LogicalChange,
    LogicalKind, Record, RecordKind, RowsReader,
};
use crate::errors::EngineError;
use crate::ids::TableId;

/// Tables and definitions named before the text says "and more".
const ITEMS_MAX: usize = 8;

/// A record's kind by its header; None for what is no record.
pub fn identify(record: &[u8]) -> Option<&'static str> {
    let header = record.first_chunk::<LOG_HEADER_BYTES>()?;
    match header[3] {
        kind if kind == RecordKind::Rows as u8 => Some("ROWS"),
        kind if kind == RecordKind::Definitions as u8 => Some("DEFINITIONS"),
        kind if kind == RecordKind::Locks as u8 => Some("LOCKS"),
        kind if kind == RecordKind::Keys as u8 => Some("KEYS"),
        kind if kind == RecordKind::Logical as u8 => Some("LOGICAL"),
        _ => None,
    }
}

/// One line about a record.
pub fn describe(record: &[u8]) -> String {
    let mut text = String::new();
    let result = match Record::parse(record) {
        Ok(Record::Rows(reader)) => describe_rows(reader, &mut text),
        Ok(Record::Definitions(reader)) => describe_definitions(reader, &mut text),
        Ok(Record::Locks(reader)) => describe_locks(reader, &mut text),
        Ok(Record::Keys(reader)) => describe_keys(reader, &mut text),
        Ok(Record::Logical(change)) => {
            describe_logical(&change, &mut text);
            Ok(())
        }
        Err(error) => Err(error),
    };
    if let Err(error) = result {
        if !text.is_empty() {
            text.push_str("; ");
        }
        append(&mut text, format_args!("damaged: {error}"));
    }
    text
}

#[derive(Default)]
struct Counts {
    insert: u64,
    update: u64,
    delete: u64,
}

fn describe_rows(mut reader: RowsReader<'_>, text: &mut String) -> Result<(), EngineError> {
    let mut tables: Vec<(TableId, Counts)> = Vec::new();
    let result = loop {
        let row = match reader.next() {
            Ok(Some(row)) => row,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        let at = match tables.iter().rposition(|(table, _)| *table == row.table) {
            Some(at) => at,
            None => {
                tables.push((row.table, Counts::default()));
                tables.len() - 1
            }
        };
        let counts = &mut tables[at].1;
        match row.change {
            Change::Insert { .. } => counts.insert += 1,
            Change::Replace { .. } | Change::Change { .. } => counts.update += 1,
            Change::Delete { .. } => counts.delete += 1,
        }
    };
    for (index, (table, counts)) in tables.iter().take(ITEMS_MAX).enumerate() {
        if index > 0 {
            text.push_str("; ");
        }
        append(text, format_args!("table {}:", table.0));
        for (name, count) in [
            ("insert", counts.insert),
            ("update", counts.update),
            ("delete", counts.delete),
        ] {
            if count > 0 {
                append(text, format_args!(" {name} {count}"));
            }
        }
    }
    if tables.len() > ITEMS_MAX {
        append(
            text,
            format_args!("; and {} more tables", tables.len() - ITEMS_MAX),
        );
    }
    result
}

fn describe_locks(reader: LocksReader<'_>, text: &mut String) -> Result<(), EngineError> {
    let mut tables: Vec<(TableId, u64)> = Vec::new();
    let mut result = Ok(());
    for lock in reader {
        match (lock, tables.last_mut()) {
            (Ok(lock), Some((table, count))) if *table == lock.table => *count += 1,
            (Ok(lock), _) => tables.push((lock.table, 1)),
            (Err(error), _) => result = Err(error),
        }
    }
    for (index, (table, count)) in tables.iter().take(ITEMS_MAX).enumerate() {
        if index > 0 {
            text.push_str("; ");
        }
        append(text, format_args!("lock {count} rows of table {}", table.0));
    }
    if tables.len() > ITEMS_MAX {
        text.push_str("; and more");
    }
    result
}

fn describe_keys(reader: KeysReader<'_>, text: &mut String) -> Result<(), EngineError> {
    let (table, index) = (reader.table.0, reader.number);
    let mut count = 0;
    let mut result = Ok(());
    for row in reader {
        match row {
            Ok(_) => count += 1,
            Err(error) => result = Err(error),
        }
    }
    append(
        text,
        format_args!("keys of {count} rows of table {table} in index {index}"),
    );
    result
}

fn describe_logical(change: &LogicalChange<'_>, text: &mut String) {
    let kind = match change.kind {
        LogicalKind::Insert => "insert",
        LogicalKind::Update => "update",
        LogicalKind::Delete => "delete",
    };
    let table = change.table;
    append(
        text,
        format_args!(
            "{kind} for decoding in file {} of tablespace {} of database {}",
            table.file, table.tablespace, table.database
        ),
    );
}

fn describe_definitions(
    reader: super::DefinitionsReader<'_>,
    text: &mut String,
) -> Result<(), EngineError> {
    for (index, change) in reader.enumerate() {
        let change = change?;
        if index > 0 {
            text.push_str("; ");
        }
        if index == ITEMS_MAX {
            text.push_str("and more");
            return Ok(());
        }
        describe_definition(&change, text);
    }
    Ok(())
}

fn describe_definition(change: &DefinitionChange, text: &mut String) {
    match change {
        DefinitionChange::CreateTable {
            table,
            key,
            persistence,
        } if !key.is_of_earlier_build() => append(
            text,
            format_args!(
                "create {}table {} for file {} of tablespace {} of database {}",
                if persistence.logs_rows() {
                    ""
                } else {
                    "unlogged "
                },
                table.0,
                key.relation,
                key.tablespace,
                key.database
            ),
        ),
        DefinitionChange::CreateTable { table, key, .. } => append(
            text,
            format_args!(
                "create table {} for relation {} of database {}",
                table.0, key.relation, key.database
            ),
        ),
        DefinitionChange::HoldsCopies { table } => {
            append(text, format_args!("copies in table {}", table.0));
        }
        DefinitionChange::DropTable { table } => {
            append(text, format_args!("drop table {}", table.0));
        }
        DefinitionChange::CreateIndex {
            index,
            table,
            definition,
        } => append(
            text,
            format_args!(
                "create {}index {} on table {} for relation {}",
                if definition.unique { "unique " } else { "" },
                index.0,
                table.0,
                definition.relation
            ),
        ),
        DefinitionChange::DropIndex { index, table } => {
            append(
                text,
                format_args!("drop index {} of table {}", index.0, table.0),
            );
        }
        DefinitionChange::FreeTable { table } => {
            append(text, format_args!("free table {}", table.0));
        }
        DefinitionChange::FreeIndex { index, table } => {
            append(
                text,
                format_args!("free index {} of table {}", index.0, table.0),
            );
        }
    }
}

fn append(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(arguments);
}
