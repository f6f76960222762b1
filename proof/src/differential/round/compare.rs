//! Ends of transactions, and both sides compared or made the same.
use super::super::by_design::Allowed;
use super::super::triggers::LOG;
use super::Round;
use crate::failure::Result;
use crate::wire::{Answer, Row};

impl Round<'_> {
    /// Rolls back what is prepared on any side, or was left by a run that ended early.
    pub(super) fn roll_back_prepared(&mut self) -> Result<()> {
        self.prepared.clear();
        let list = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()";
        for row in self.monitor.must(list)?.rows {
            let name = row[0].as_deref().unwrap_or_default();
            self.monitor.must(&format!("ROLLBACK PREPARED '{name}'"))?;
        }
        Ok(())
    }

    pub(super) fn end_all(&mut self) -> Result<()> {
        // Before anything ends that it waits for: it would go on, on one side before the other, and
        // maybe on that side only.
        if let Some(waiting) = self.waiting.take() {
            let _ = self.pairs[waiting].cancel(&mut self.monitor)?;
        }
        self.roll_back_prepared()?;
        for (who, pair) in self.pairs.iter_mut().enumerate() {
            pair.roll_back()?;
            pair.forget();
            self.cursors[who] = None;
            self.has_savepoint[who] = false;
        }
        Ok(())
    }

    /// Columns, indexes, constraints and triggers of a side.
    pub(super) fn definitions_of(&mut self, schema: &str) -> Result<Answer> {
        self.monitor.must(&format!(
            "WITH c AS (SELECT oid, relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace)
             SELECT relname::text, 'column' AS kind, attname::text AS name FROM c JOIN pg_attribute ON attrelid = oid
               WHERE attnum > 0 AND NOT attisdropped AND relname !~ '_(key|unique|index|extra)'
             UNION ALL SELECT relname::text, 'index', (SELECT i.relname::text FROM c i WHERE i.oid = \
             indexrelid) FROM c JOIN pg_index ON indrelid = oid
             UNION ALL SELECT relname::text, 'constraint', conname::text FROM c JOIN pg_constraint ON conrelid = c.oid
             UNION ALL SELECT relname::text, 'trigger', rtrim(tgname::text, '0123456789') || tgenabled::text \
             FROM c JOIN pg_trigger ON tgrelid = c.oid
             ORDER BY 1, 2, 3"
        ))
    }

    /// Whether a CHECK asks new rows only.
    fn has_unproven_checks(&mut self) -> Result<bool> {
        let list = "SELECT FROM pg_constraint WHERE connamespace = 'd_heap'::regnamespace AND NOT convalidated";
        Ok(!self.monitor.must(list)?.rows.is_empty())
    }

    /// The tables, and what triggers wrote.
    pub(super) fn names(&self) -> Vec<String> {
        let tables = self.tables.iter().map(|table| table.name.clone());
        tables.chain([LOG.to_owned()]).collect()
    }

    /// The tables that some of them inherit from, on both sides heap tables.
    fn parents(&self) -> Vec<String> {
        let parents = self.tables.iter().map(|table| table.around.parent(table));
        parents.flatten().collect()
    }

    /// Ends all transactions, and gives the MOT side the heap side's rows: what one side committed,
    /// the other may not have.
    pub(super) fn resynchronize(&mut self, allowed: &'static Allowed) -> Result<()> {
        *self.tally.allowed.entry(allowed.name).or_default() += 1;
        // One that only one side waits in is among them.
        for who in 0..self.pairs.len() {
            if self.pairs[who].waits_with().is_some() {
                let _ = self.pairs[who].cancel(&mut self.monitor)?;
            }
        }
        self.waiting = None;
        self.end_all()?;
        if self.has_unproven_checks()?
            || self.definitions_of("d_heap")? != self.definitions_of("d_mot")?
        {
            // The MOT side cannot be given rows that break a CHECK which is not valid yet; or one
            // side's COMMIT took changed definitions along, the other's failed.
            self.is_over = true;
            return Ok(());
        }
        self.monitor
            .must("SET session_replication_role = replica")?;
        // All of them at once, as tables that refer to each other must be.
        let names: Vec<(String, &str)> = self
            .names()
            .into_iter()
            .chain(self.parents())
            .map(|name| {
                let is_partitioned = self
                    .tables
                    .iter()
                    .any(|table| table.name == name && table.ordinary.is_partitioned);
                (name, if is_partitioned { "" } else { "ONLY " })
            })
            .collect();
        let emptied: Vec<String> = names
            .iter()
            .map(|(name, only)| format!("{only}d_mot.{name}"))
            .collect();
        self.monitor
            .must(&format!("TRUNCATE {}", emptied.join(", ")))?;
        for (name, only) in &names {
            self.monitor.must(&format!(
                "INSERT INTO d_mot.{name} SELECT * FROM {only}d_heap.{name}"
            ))?;
        }
        self.monitor.must("RESET session_replication_role")?;
        Ok(())
    }

    pub(super) fn compare_tables(&mut self) -> Result<Option<String>> {
        if self.is_over {
            return Ok(None);
        }
        let definitions = (
            self.definitions_of("d_heap")?,
            self.definitions_of("d_mot")?,
        );
        if definitions.0 != definitions.1 {
            let only = |these: &Answer, those: &Answer| -> Vec<Row> {
                let rows = these.rows.iter();
                rows.filter(|row| !those.rows.contains(row))
                    .cloned()
                    .collect()
            };
            return Ok(Some(format!(
                "definitions at the end: only heap {:?}, only MOT {:?}",
                only(&definitions.0, &definitions.1),
                only(&definitions.1, &definitions.0)
            )));
        }
        let parents = self.parents();
        for name in self.names().iter().chain(&parents) {
            let digest = |schema: &str| {
                format!(
                    "SELECT count(*), coalesce(string_agg(t::text, '|' ORDER BY t::text COLLATE \"C\"), '') \
                     FROM {schema}.{name} t"
                )
            };
            let heap = self.monitor.must(&digest("d_heap"))?;
            let mot = self.monitor.must(&digest("d_mot"))?;
            if heap.rows != mot.rows {
                return Ok(Some(format!(
                    "{name} at the end: heap {:?}, MOT {:?}",
                    heap.rows, mot.rows
                )));
            }
        }
        self.monitor.must(
            "SELECT c.oid::regclass, rows FROM pg_class c LEFT JOIN pg_am a ON a.oid = relam, mot.check(c.oid::regclass)
             WHERE relnamespace = 'd_mot'::regnamespace AND (relkind = 'f' OR relkind = 'r' AND amname = 'mot')",
        )?;
        Ok(None)
    }
}
