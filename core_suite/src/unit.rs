//! The smallest part of a test that is compared.

/// One statement with its output, or one step of an isolation spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Where it is: a line of the script, or a permutation and a step.
    pub place: String,
    /// The statement. Several that end on one line are one unit.
    pub text: String,
    /// What followed it in the result file.
    pub output: Vec<String>,
    /// False if the run ended before it.
    pub ran: bool,
}
