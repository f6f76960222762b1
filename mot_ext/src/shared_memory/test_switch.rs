//! Bugs on purpose: `mot.test_switch` leaves out one step that isolation rests on, so that the
//! tests which look for such bugs are known to find them (`proof/tests/seeded_bugs.rs`); or it
//! makes a worker slow where a race with it is to be lost. Only in builds with debug assertions
//! (`checked`), for superusers; elsewhere [`skips`] is false at compile time and there is no such
//! setting. The list is [`Step`].

#[cfg(debug_assertions)]
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};

/// Steps that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(debug_assertions, derive(PostgresGucEnum))]
#[allow(clippy::enum_variant_names)]
pub enum Step {
    /// All steps are taken.
    #[cfg(debug_assertions)]
    #[name = c"none"]
    None,
    /// Before a row is changed: whether it is still in the state the statement saw. READ
    /// COMMITTED's second read of the row and REPEATABLE READ's 40001 go with it.
    #[cfg_attr(debug_assertions, name = c"skip-update-recheck")]
    UpdateRecheck,
    /// FOR UPDATE and its weaker kin lock the row.
    #[cfg_attr(debug_assertions, name = c"skip-row-locks")]
    RowLocks,
    /// SERIALIZABLE notes what it reads.
    #[cfg_attr(debug_assertions, name = c"skip-predicate-locks")]
    PredicateLocks,
    /// The checkpoint worker holds its slot at the first turn at which it could.
    #[cfg_attr(debug_assertions, name = c"skip-prompt-slot")]
    PromptSlot,
}

#[cfg(debug_assertions)]
static SWITCH: GucSetting<Step> = GucSetting::<Step>::new(Step::None);

/// Defines the setting.
#[cfg(debug_assertions)]
pub fn init() {
    GucRegistry::define_enum_guc(
        c"mot.test_switch",
        c"Breaks isolation or promptness on purpose, to try the tests that prove it.",
        c"Leaves out one step. Only in builds with debug assertions.",
        &SWITCH,
        GucContext::Suset,
        GucFlags::NO_SHOW_ALL,
    );
}

/// Defines nothing.
#[cfg(not(debug_assertions))]
pub fn init() {}

/// Whether a step is to be left out.
#[cfg(debug_assertions)]
pub fn skips(step: Step) -> bool {
    SWITCH.get() == step
}

/// No.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn skips(_: Step) -> bool {
    false
}

/// Turns of a worker in which it does not reach a step that is skipped at first.
#[derive(Debug)]
pub struct Delay {
    #[cfg(debug_assertions)]
    turns_left: u32,
}

impl Delay {
    /// Half a second of turns if the step is to be skipped, and else none.
    pub fn of(step: Step) -> Self {
        #[cfg(debug_assertions)]
        return Self {
            turns_left: if skips(step) { 50 } else { 0 },
        };
        #[cfg(not(debug_assertions))]
        {
            let _ = step;
            Self {}
        }
    }

    /// Whether this turn is one of them.
    #[cfg(debug_assertions)]
    pub fn goes_on(&mut self) -> bool {
        let goes_on = self.turns_left > 0;
        self.turns_left = self.turns_left.saturating_sub(1);
        goes_on
    }

    /// No.
    #[cfg(not(debug_assertions))]
    #[inline(always)]
    pub fn goes_on(&mut self) -> bool {
        false
    }
}
