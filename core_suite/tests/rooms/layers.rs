//! The one place in which the order of rooms is written.

/// A crate whose rooms are layers.
pub struct Crate {
    /// Its name, which is that of its directory.
    pub name: &'static str,
    /// Its rooms, the lowest first.
    pub layers: &'static [&'static str],
}

/// The tree of keys.
pub const INDEX: Crate = Crate {
    name: "mot_index",
    layers: &[
        // Words that processes share, comparisons of many at once, and where blocks come from.
        "sync",
        "simd",
        "memory",
        "version",
        // Parts of a key and of a node.
        "slice",
        "permutation",
        "direction",
        "bag",
        "node",
        "suffixes",
        "tree",
        // Reading: descents, then scans.
        "descend",
        "entries",
        "frame",
        "batch",
        "scan",
        "cursor",
        "many",
        "measure",
        "verify",
        // Writing: one key, then nodes that split, widen, redistribute and vanish.
        "layer",
        "update",
        "insert_position",
        "held",
        "cut",
        "split",
        "widen",
        "redistribute",
        "unlink",
        // Whole trees.
        "bulk",
        "join",
        "clear",
        "map",
    ],
};

/// The engine.
pub const ENGINE: Crate = Crate {
    name: "mot_engine",
    layers: &[
        // Words that processes share, numbers, files.
        "sync",
        "steps",
        "limits",
        "disk",
        // The arena.
        "memory",
        // What all others speak of.
        "errors",
        "threads",
        "ids",
        "pause",
        "clock",
        // Keys and rows.
        "collation",
        "key",
        "row",
        "table",
        "log",
        // The shared root, and one process's or thread's access to it.
        "engine",
        "decoded",
        "session",
        // Entries, removing what nobody sees, changes.
        "index",
        "reclaim",
        "transaction",
        // Reading.
        "scan",
        "check",
        // Files, and the way back from them.
        "checkpoint",
        "recovery",
        "quiescent",
    ],
};

/// The extension.
pub const EXTENSION: Crate = Crate {
    name: "mot_ext",
    layers: &[
        // Bindings of PostgreSQL, and what they need of each other.
        "pg",
        // The control block and the settings.
        "shared_memory",
        // How errors are raised; errors of more than one room, and log messages.
        "errors",
        // Rows that pg_upgrade brings along.
        "upgrade",
        // Values as key bytes.
        "keys",
        // Filters, accumulators and core's expressions over one row or a group of rows.
        "executor",
        // Transactions, snapshots, sessions, waiting for a row.
        "transaction",
        // What logical decoding is told.
        "decoding",
        // What PostgreSQL's SSI is told.
        "serializable",
        // From a relation to its storage; definitions and builds of indexes.
        "storage",
        // One row: its tuple id, showing, writing and locking it.
        "rows",
        // Reading rows by key.
        "access",
        // The access methods.
        "table_am",
        "index_am",
        // Nodes of core's executor, and the paths that lead to them.
        "plan_nodes",
        "planner",
        // Statements that run without core's executor.
        "compiled",
        // What core's DDL cannot know.
        "ddl",
        // Checkpoint files and gates; loading and replay; removing dead versions.
        "checkpoint",
        "recovery",
        "reclaim",
        // The background workers that drive the three.
        "workers",
        // Views and the check of tables.
        "monitoring",
    ],
};
