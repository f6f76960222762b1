//! A plan as the server tells it: recognised again, and told in a line.
use serde_json::Value;

/// What EXPLAIN (FORMAT JSON, COSTS OFF) says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan(Value);

impl Plan {
    /// `None`: it is no plan.
    pub fn parse(text: &str) -> Option<Plan> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Plan(value.get(0)?.get("Plan")?.clone()))
    }

    /// The nodes, the inner ones in parentheses.
    pub fn told(&self) -> String {
        told(&self.0)
    }
}

fn told(node: &Value) -> String {
    let text = |name: &str| node.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut words = match text("Custom Plan Provider") {
        "" => text("Node Type").to_owned(),
        provider => provider.to_owned(),
    };
    if text("Strategy") == "Hashed" {
        words.insert_str(0, "Hash");
    }
    if text("Scan Direction") == "Backward" {
        words += " Backward";
    }
    match (text("Index Name"), text("Relation Name")) {
        ("", "") => {}
        ("", table) => words += &format!(" {table}"),
        (index, _) => words += &format!(" {index}"),
    }
    let below: Vec<String> = (node.get("Plans").and_then(Value::as_array))
        .map_or(vec![], |plans| plans.iter().map(told).collect());
    match below.is_empty() {
        true => words,
        false => format!("{words}({})", below.join(", ")),
    }
}
