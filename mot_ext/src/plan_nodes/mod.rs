//! Executor nodes: our CustomScans, and what core's ModifyTable needs for memory-optimized tables.
//!
//! | file | what |
//! |---|---|
//! | `filtered_scan` | a scan of all rows with its conditions inside |
//! | `aggregated_scan` | counts, sums and extremes of one table inside its scan |
//! | `row_comparison` | an index scan by a comparison of rows on 15 to 17 |
//! | `on_conflict` | INSERT ... ON CONFLICT on 15 to 17 finds btrees |
//! | `row_memory` | rows of BEFORE triggers beside data-modifying WITH parts |
//!
//! Programs and accumulators that run over rows are in `executor`; the planner offers the nodes.
pub mod aggregated_scan;
pub mod filtered_scan;
pub mod on_conflict;
pub mod row_comparison;
pub mod row_memory;
