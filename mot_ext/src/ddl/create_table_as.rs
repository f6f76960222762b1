//! CREATE TABLE AS and SELECT INTO under `mot.create_tables`: the table first, then INSERT ... SELECT of the very query.
//!
//! The query comes analyzed and may hold parameters, so it is not turned back into text: an INSERT is put around it, and that is rewritten,
//! planned and run with the statement's own parameters, as core does with the query alone.
use super::create_table;
use super::nodes;
use super::refuse::unsupported;
use super::utility::Statement;
use crate::pg::version;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;

/// Makes and fills the table. The statement is one that should make a memory-optimized table.
pub unsafe fn run(statement: &Statement, node: *mut pg_sys::CreateTableAsStmt) {
    // SAFETY: a live node of this type, whose query parse analysis made.
    unsafe {
        let node = nodes::copy(node);
        let into = (*node).into;
        let query = (*node).query.cast::<pg_sys::Query>();
        if (*query).commandType == pg_sys::CmdType::CMD_UTILITY {
            unsupported(
                "CREATE TABLE AS EXECUTE cannot create a memory-optimized table",
                "Use CREATE TABLE AS with the query itself.",
            );
        }
        if (*query).hasModifyingCTE && !(*into).skipData {
            // Core rewrites INSERT, UPDATE and DELETE in the WITH of a whole statement, and the query becomes a part of one.
            unsupported(
                "CREATE TABLE AS with INSERT, UPDATE or DELETE in its WITH cannot create a memory-optimized table",
                "Create the table first, and INSERT with the same WITH into it.",
            );
        }
        let stmt = nodes::make::<pg_sys::CreateStmt>(T_CreateStmt);
        (*stmt).relation = (*into).rel;
        (*stmt).tableElts = column_definitions(into, query);
        (*stmt).options = (*into).options;
        (*stmt).tablespacename = (*into).tableSpaceName;
        (*stmt).oncommit = (*into).onCommit;
        (*stmt).if_not_exists = (*node).if_not_exists;
        let Some(relid) = create_table::as_mot(statement, stmt) else {
            return;
        };
        if (*into).skipData {
            return;
        }
        let rows = insert(statement, relid, query);
        statement.complete(pg_sys::CommandTag::CMDTAG_SELECT, rows);
    }
}

/// The columns of the query's result, renamed by the statement's list.
unsafe fn column_definitions(
    into: *mut pg_sys::IntoClause,
    query: *mut pg_sys::Query,
) -> *mut pg_sys::List {
    // SAFETY: live nodes; a target list holds TargetEntry nodes.
    unsafe {
        let mut names = nodes::items::<pg_sys::Node>((*into).colNames).into_iter();
        let mut columns = Vec::new();
        for entry in results(query) {
            let name = match names.next() {
                Some(name) => nodes::string(name),
                None => (*entry).resname,
            };
            let expression = (*entry).expr.cast::<pg_sys::Node>();
            let collation = pg_sys::exprCollation(expression);
            let type_oid = pg_sys::exprType(expression);
            if collation == pg_sys::InvalidOid && pg_sys::type_is_collatable(type_oid) {
                super::refuse::raise(
                    pgrx::PgSqlErrorCode::ERRCODE_INDETERMINATE_COLLATION,
                    format!(
                        "no collation was derived for column \"{}\"",
                        nodes::text(name)
                    ),
                    None,
                    Some("Use the COLLATE clause to set the collation explicitly.".into()),
                );
            }
            columns.push(pg_sys::makeColumnDef(
                name,
                type_oid,
                pg_sys::exprTypmod(expression),
                collation,
            ));
        }
        if names.next().is_some() {
            super::refuse::raise(
                pgrx::PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
                "too many column names were specified",
                None,
                None,
            );
        }
        nodes::list(&columns)
    }
}

/// The target entries that are results.
unsafe fn results(query: *mut pg_sys::Query) -> Vec<*mut pg_sys::TargetEntry> {
    // SAFETY: a live query.
    unsafe {
        nodes::items::<pg_sys::TargetEntry>((*query).targetList)
            .into_iter()
            .filter(|entry| !(**entry).resjunk)
            .collect()
    }
}

/// Runs `INSERT INTO relid` of the query; returns the rows inserted.
unsafe fn insert(statement: &Statement, relid: pg_sys::Oid, query: *mut pg_sys::Query) -> u64 {
    // SAFETY: nodes of our own around a copy of the query; snapshot and executor calls are paired, an error ends the transaction.
    unsafe {
        let names: Vec<_> = results(query)
            .iter()
            .map(|entry| {
                let name = if (**entry).resname.is_null() {
                    c"?column?".as_ptr()
                } else {
                    (**entry).resname.cast_const()
                };
                pg_sys::makeString(pg_sys::pstrdup(name))
            })
            .collect();
        let target = nodes::make::<pg_sys::RangeTblEntry>(T_RangeTblEntry);
        (*target).rtekind = pg_sys::RTEKind::RTE_RELATION;
        (*target).relid = relid;
        (*target).relkind = pg_sys::RELKIND_FOREIGN_TABLE as _;
        (*target).rellockmode = pg_sys::RowExclusiveLock as _;
        (*target).eref = pg_sys::makeAlias(pg_sys::get_rel_name(relid), nodes::list(&names));
        let source = nodes::make::<pg_sys::RangeTblEntry>(T_RangeTblEntry);
        (*source).rtekind = pg_sys::RTEKind::RTE_SUBQUERY;
        (*source).subquery = nodes::copy(query);
        (*source).eref = pg_sys::makeAlias(c"*SELECT*".as_ptr(), nodes::list(&names));

        let mut targets = Vec::new();
        for (position, entry) in results(query).into_iter().enumerate() {
            let number = position as i16 + 1;
            let expression = (*entry).expr.cast::<pg_sys::Node>();
            let value = pg_sys::makeVar(
                2,
                number,
                pg_sys::exprType(expression),
                pg_sys::exprTypmod(expression),
                pg_sys::exprCollation(expression),
                0,
            );
            let name = pg_sys::get_attname(relid, number, false);
            targets.push(pg_sys::makeTargetEntry(value.cast(), number, name, false));
        }
        let from = nodes::make::<pg_sys::RangeTblRef>(T_RangeTblRef);
        (*from).rtindex = 2;
        let insert = nodes::make::<pg_sys::Query>(T_Query);
        (*insert).commandType = pg_sys::CmdType::CMD_INSERT;
        (*insert).canSetTag = true;
        // As in core, who may create the table may fill it, whatever the default privileges say.
        version::ask_no_privilege(insert, target);
        (*insert).resultRelation = 1;
        (*insert).rtable = nodes::list(&[target, source]);
        (*insert).targetList = nodes::list(&targets);
        (*insert).jointree = pg_sys::makeFromExpr(nodes::list(&[from]), std::ptr::null_mut());

        let rewritten = nodes::items::<pg_sys::Query>(pg_sys::QueryRewrite(insert));
        let [insert] = rewritten[..] else {
            unreachable!("a new table has no rules");
        };
        let plan = pg_sys::pg_plan_query(
            insert,
            statement.query_string(),
            pg_sys::CURSOR_OPT_PARALLEL_OK as i32,
            statement.params(),
        );
        pg_sys::PushCopiedSnapshot(pg_sys::GetActiveSnapshot());
        pg_sys::UpdateActiveSnapshotCommandId();
        let run = pg_sys::CreateQueryDesc(
            plan,
            statement.query_string(),
            pg_sys::GetActiveSnapshot(),
            std::ptr::null_mut(),
            pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestNone),
            statement.params(),
            statement.query_environment(),
            0,
        );
        pg_sys::ExecutorStart(run, 0);
        version::run_to_end(run);
        let rows = (*(*run).estate).es_processed;
        pg_sys::ExecutorFinish(run);
        pg_sys::ExecutorEnd(run);
        pg_sys::FreeQueryDesc(run);
        pg_sys::PopActiveSnapshot();
        rows
    }
}
