//! Event triggers of statements that do not go through core, fired where core would fire them.
//!
//! `ddl_command_start` can refuse a statement, and `ddl_command_end` is told what was made. Core fires both, and `sql_drop`, for whatever it gets to
//! run; of CREATE INDEX, and of an ALTER TABLE that only adds keys, it gets nothing.
use super::nodes;
use super::utility::Statement;
use pgrx::pg_sys;

/// A statement between its triggers.
pub struct Command {
    node: *mut pg_sys::Node,
    is_whole: bool,
    is_altering: bool,
    /// Core keeps what the triggers will be told, and wants to hear that it is over, after an error, too.
    is_noted: bool,
}

impl Command {
    /// Fires `ddl_command_start`, unless the statement is a part of another one. The node must live until the end.
    pub unsafe fn begin<T>(statement: &Statement, node: *mut T) -> Command {
        // SAFETY: a live parse tree. From the first call on, whatever is raised drops `command`.
        unsafe {
            let is_whole = !statement.is_part();
            let command = Command {
                node: node.cast(),
                is_whole,
                is_altering: false,
                is_noted: is_whole && pg_sys::EventTriggerBeginCompleteQuery(),
            };
            if is_whole {
                pg_sys::EventTriggerDDLCommandStart(command.node);
            }
            command
        }
    }

    /// The same for an ALTER TABLE, with all that it says.
    pub unsafe fn begin_alter(
        statement: &Statement,
        node: *mut pg_sys::AlterTableStmt,
        table: pg_sys::Oid,
    ) -> Command {
        // SAFETY: as `begin`; a live list of commands.
        unsafe {
            let mut command = Command::begin(statement, node);
            command.is_altering = true;
            pg_sys::EventTriggerAlterTableStart(command.node);
            pg_sys::EventTriggerAlterTableRelid(table);
            for part in nodes::items::<pg_sys::Node>((*node).cmds) {
                pg_sys::EventTriggerCollectAlterTableSubcmd(part, relation(table));
            }
            command
        }
    }

    /// Tells what was made.
    pub fn has_made(&self, made: pg_sys::Oid) {
        let none = pg_sys::ObjectAddress {
            classId: pg_sys::InvalidOid,
            ..relation(pg_sys::InvalidOid)
        };
        // SAFETY: the node lives.
        unsafe { pg_sys::EventTriggerCollectSimpleCommand(relation(made), none, self.node) };
    }

    /// The statement has done its work: fires `sql_drop` and `ddl_command_end`.
    pub fn end(self) {
        // SAFETY: the node lives.
        unsafe {
            if self.is_altering {
                pg_sys::EventTriggerAlterTableEnd();
            }
            if self.is_whole {
                pg_sys::EventTriggerSQLDrop(self.node);
                pg_sys::EventTriggerDDLCommandEnd(self.node);
            }
        }
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        if self.is_noted {
            // SAFETY: begun once, and ended here alone. It raises nothing.
            unsafe { pg_sys::EventTriggerEndCompleteQuery() };
        }
    }
}

fn relation(relid: pg_sys::Oid) -> pg_sys::ObjectAddress {
    pg_sys::ObjectAddress {
        classId: pg_sys::RelationRelationId,
        objectId: relid,
        objectSubId: 0,
    }
}
