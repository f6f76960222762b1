//! One terminal: an OS thread with a session of its own that runs transactions until told to stop.

use crate::effect::EffectNote;
use crate::failure::{Failure, Result};
use crate::inputs::{Inputs, Kind};
use crate::interactive::{self, Scratch};
use crate::ledger::LedgerWriter;
use crate::procedures;
use crate::random::TpccRng;
use crate::session::Session;
use crate::statements::{Desk, Interactive, ModeStatements, Procedures};
use crate::stats::TerminalStats;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How a transaction reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Statement by statement.
    Interactive,
    /// One function call per transaction.
    Procedures,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Interactive => "interactive",
            Mode::Procedures => "procedures",
        })
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The COMMIT was answered.
    Committed,
    /// The one per cent of new orders that must roll back did.
    RolledBack,
}

/// Which transaction runs where.
pub struct Place<'a> {
    /// Warehouse of this transaction.
    pub w: i32,
    /// The terminal's own district, for stock-level.
    pub d: i32,
    /// The run's name.
    pub run: &'a str,
    /// The terminal's number.
    pub terminal: u32,
    /// Number of the transaction in the terminal, from 1.
    pub seq: u64,
}

impl Place<'_> {
    /// What a payment's `h_data` starts with.
    pub fn tag(&self) -> impl fmt::Display {
        struct Tag<'b>(&'b str, u32, u64);
        impl fmt::Display for Tag<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}:{}:{}", self.0, self.1, self.2)
            }
        }
        Tag(self.run, self.terminal, self.seq)
    }
}

/// What the coordinator and the terminals share.
pub struct Shared {
    phase: AtomicU8,
    /// Transactions ended since the start, for the progress line.
    pub ended: AtomicU64,
    /// New orders among them.
    pub new_orders: AtomicU64,
}

/// Stages of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Terminals work, nothing is recorded.
    WarmUp = 0,
    /// Transactions that end now are recorded.
    Measure = 1,
    /// Terminals end after the transaction under way.
    Stop = 2,
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            phase: AtomicU8::new(Phase::WarmUp as u8),
            ended: AtomicU64::new(0),
            new_orders: AtomicU64::new(0),
        }
    }
}

impl Shared {
    /// Moves to `phase`.
    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// The stage the run is in.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::WarmUp,
            1 => Phase::Measure,
            _ => Phase::Stop,
        }
    }
}

/// What one terminal needs to know.
pub struct TerminalConfig<'a> {
    /// Its number, from 0.
    pub terminal: u32,
    /// Its home district.
    pub district: i32,
    /// Its home warehouse, if it stays at one; else every transaction draws its own.
    pub home: Option<i32>,
    /// The run's name.
    pub run: &'a str,
    /// The ledger, if one is kept.
    pub ledger: Option<&'a LedgerWriter>,
    /// Time from the begin of one transaction to that of the next, if the load is limited. A
    /// terminal that is late catches up.
    pub pause: Option<Duration>,
}

/// Times the same transaction may be tried again after a serialization failure or a deadlock.
const MAX_RETRIES: u32 = 100;

/// Multiples of it, less their whole part, lie evenly between 0 and 1 however many there are.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;

/// A terminal ready to run.
pub struct Terminal<'a> {
    config: TerminalConfig<'a>,
    desk: Desk,
    statements: ModeStatements,
    scratch: Scratch,
    inputs: Inputs,
    rng: TpccRng,
    note: EffectNote,
    line: String,
    stats: TerminalStats,
}

impl<'a> Terminal<'a> {
    /// Prepares the statements of `mode` on `session`.
    pub fn new(
        config: TerminalConfig<'a>,
        session: Session,
        mode: Mode,
        inputs: Inputs,
        rng: TpccRng,
    ) -> Result<Self> {
        let mut desk = Desk::new(session)?;
        let statements = match mode {
            Mode::Interactive => {
                ModeStatements::Interactive(Box::new(Interactive::prepare(&mut desk.session)?))
            }
            Mode::Procedures => {
                ModeStatements::Procedures(Box::new(Procedures::prepare(&mut desk.session)?))
            }
        };
        Ok(Terminal {
            config,
            desk,
            statements,
            scratch: Scratch::default(),
            inputs,
            rng,
            note: EffectNote::default(),
            line: String::with_capacity(256),
            stats: TerminalStats::default(),
        })
    }

    /// Runs transactions until `shared` says stop or the session is lost.
    pub fn run(mut self, shared: &Shared) -> TerminalStats {
        let mut seq = 0;
        let begin = Instant::now();
        while shared.phase() != Phase::Stop {
            if let Some(pause) = self.config.pause {
                // Terminals take turns within the first pause, so that they do not come in bursts.
                let turn = f64::from(self.config.terminal) * GOLDEN_RATIO % 1.0;
                let due = pause.mul_f64(seq as f64 + turn);
                std::thread::sleep(due.saturating_sub(begin.elapsed()));
            }
            seq += 1;
            if let Err(failure) = self.one_transaction(shared, seq) {
                self.stats.end_with(&failure);
                return self.stats;
            }
        }
        if let Some(ledger) = self.config.ledger
            && let Err(failure) = ledger.end(self.config.terminal, seq)
        {
            self.stats.end_with(&failure);
        }
        self.stats
    }

    /// Draws and runs one transaction. An error returned here ends the terminal.
    fn one_transaction(&mut self, shared: &Shared, seq: u64) -> Result<()> {
        let kind = Kind::draw(&mut self.rng);
        let w = self
            .config
            .home
            .unwrap_or_else(|| self.inputs.draw_warehouse(&mut self.rng));
        self.inputs.draw(&mut self.rng, kind, w);
        let (run, terminal) = (self.config.run, self.config.terminal);
        let place = Place {
            w,
            d: self.config.district,
            run,
            terminal,
            seq,
        };

        let start = Instant::now();
        let mut retries = 0;
        let outcome = loop {
            match self.execute(&place, kind) {
                Ok(outcome) => break outcome,
                Err(Failure::Server { state, message }) => {
                    self.desk.rollback()?;
                    if state.is_retryable() && retries < MAX_RETRIES {
                        retries += 1;
                        self.stats.retry(state);
                        continue;
                    }
                    self.stats.error(state, kind, &message);
                    return Ok(());
                }
                Err(failure) => {
                    if self.desk.commit_sent
                        && let Some(ledger) = self.config.ledger
                    {
                        ledger.in_flight(&mut self.line, terminal, seq, &self.note.effect)?;
                    } else if let Some(ledger) = self.config.ledger {
                        // No COMMIT was sent: nothing of this transaction may ever be seen.
                        ledger.end(terminal, seq)?;
                    }
                    return Err(failure);
                }
            }
        };
        if outcome == Outcome::Committed
            && let Some(ledger) = self.config.ledger
        {
            ledger.acknowledge(&mut self.line, terminal, seq, &self.note.effect)?;
        }
        shared.ended.fetch_add(1, Ordering::Relaxed);
        if kind == Kind::NewOrder {
            shared.new_orders.fetch_add(1, Ordering::Relaxed);
        }
        if shared.phase() == Phase::Measure {
            self.stats.record(kind, outcome, start.elapsed());
        }
        Ok(())
    }

    fn execute(&mut self, place: &Place<'_>, kind: Kind) -> Result<Outcome> {
        self.note.clear();
        let (desk, inputs, note) = (&mut self.desk, &self.inputs, &mut self.note);
        match &self.statements {
            ModeStatements::Interactive(statements) => interactive::execute(
                desk,
                statements,
                &mut self.scratch,
                place,
                kind,
                inputs,
                note,
            ),
            ModeStatements::Procedures(calls) => {
                procedures::execute(desk, calls, place, kind, inputs, note)
            }
        }
    }
}
