//! One side: a session whose tables are heap tables, or MOT tables.
use crate::failure::Result;
use crate::wire::{Place, Session};

/// A session, and where its tables are.
pub struct Side {
    pub session: Session,
    pub schema: &'static str,
    pub method: &'static str,
}

/// Settings that are not plans': no other transaction's work, nothing compiled by the way.
const SETTINGS: &str = "SET client_min_messages = warning; SET synchronous_commit = off; SET jit = off; SET \
    work_mem = '16MB'";

impl Side {
    pub fn open(place: &Place, schema: &'static str, method: &'static str) -> Result<Side> {
        let mut session = Session::open(place)?;
        session.must(SETTINGS)?;
        session.must(&format!("SET search_path = {schema}, public"))?;
        Ok(Side {
            session,
            schema,
            method,
        })
    }

    /// Makes the schema anew.
    pub fn make_schema(&mut self) -> Result<()> {
        let schema = self.schema;
        self.session.must(&format!(
            "DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; SET search_path = {schema}, public"
        ))?;
        Ok(())
    }

    /// Has the planner know what is in the tables.
    pub fn settle(&mut self) -> Result<()> {
        let tables = self.session.must(&format!(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = '{}'",
            self.schema
        ))?;
        let names: Vec<String> = tables.rows.into_iter().flatten().flatten().collect();
        // Of a heap table the pages are marked all visible, as those of a table at rest are.
        self.session
            .must(&format!("VACUUM ANALYZE {}", names.join(", ")))?;
        Ok(())
    }
}
