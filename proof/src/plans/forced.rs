//! What forces a plan: settings of the planner's, alone and together.

/// Settings that make the planner choose another plan than it would.
pub const FORCED: [&[(&str, &str)]; 27] = [
    &[],
    &[("enable_seqscan", "off")],
    &[("enable_indexscan", "off")],
    &[("enable_indexonlyscan", "off")],
    &[("enable_bitmapscan", "off")],
    &[("enable_sort", "off")],
    &[("enable_incremental_sort", "off")],
    &[("enable_hashjoin", "off")],
    &[("enable_mergejoin", "off")],
    &[("enable_nestloop", "off")],
    &[("enable_memoize", "off")],
    &[("enable_material", "off")],
    &[("enable_hashagg", "off")],
    &[("max_parallel_workers_per_gather", "0")],
    // No scan but of one kind.
    &[("enable_indexscan", "off"), ("enable_bitmapscan", "off")],
    &[("enable_seqscan", "off"), ("enable_bitmapscan", "off")],
    &[("enable_seqscan", "off"), ("enable_indexscan", "off")],
    &[("enable_seqscan", "off"), ("enable_sort", "off")],
    &[
        ("enable_seqscan", "off"),
        ("enable_bitmapscan", "off"),
        ("max_parallel_workers_per_gather", "0"),
    ],
    // No join but of one kind.
    &[("enable_hashjoin", "off"), ("enable_mergejoin", "off")],
    &[("enable_hashjoin", "off"), ("enable_nestloop", "off")],
    &[("enable_mergejoin", "off"), ("enable_nestloop", "off")],
    &[("join_collapse_limit", "1"), ("from_collapse_limit", "1")],
    &[("enable_hashagg", "off"), ("enable_seqscan", "off")],
    &[("enable_hashjoin", "off"), ("enable_seqscan", "off")],
    // Workers at no cost.
    &[
        ("parallel_setup_cost", "0"),
        ("parallel_tuple_cost", "0"),
        ("min_parallel_table_scan_size", "0"),
    ],
    // Nothing of the extension's own nodes. It is on again when the plan runs.
    &[("mot.compiled_statements", "off")],
];

/// The settings in SET's words, for a transaction.
pub fn set(settings: &[(&str, &str)]) -> String {
    let set: Vec<String> = settings
        .iter()
        .map(|(name, value)| format!("SET LOCAL {name} = {value}; "))
        .collect();
    set.concat()
}

/// The settings as they are told.
pub fn told(settings: &[(&str, &str)]) -> String {
    if settings.is_empty() {
        return "none".to_owned();
    }
    let told: Vec<String> = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    told.join(" ")
}
