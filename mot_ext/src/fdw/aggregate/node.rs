//! The node that runs: takes the rows of the scan below it by the group, adds them up, and gives one row.
use super::accumulate::{Accumulator, Fixeds};
use super::call::{Argument, Call, argument_of};
use super::numeric::Fixed;
use super::rights;
use crate::fdw::expressions::{evaluate, passes};
use crate::fdw::filter::{
    Compiler, Found, Group, Groups, Lacking, Layout, Number, Numbers, Parameters, ROWS, Rows,
    members, payload,
};
use crate::fdw::private::items;
use crate::fdw::scan::{keep, state as scan_state};
use crate::fdw::tuple;
use crate::pg::interrupts;
use crate::settings::{COMPILED_STATEMENTS, CompiledStatements};
use pgrx::pg_sys;

/// The aggregates of a node.
struct Aggregation {
    /// The scan's node.
    below: *mut pg_sys::ForeignScanState,
    calls: Vec<Running>,
    layout: Layout,
    /// There are none: who compiles wants them.
    parameters: Parameters,
    group: Group,
    /// Arguments are core's to evaluate, as conditions are: under a plan from before `mot.compiled_statements` became `off`.
    is_general: bool,
    /// The row was given.
    is_done: bool,
}

/// An aggregate under way.
struct Running {
    call: Call,
    general: General,
    /// Core's form of FILTER; NULL if there is none.
    general_filter: *mut pg_sys::ExprState,
    accumulator: Accumulator,
    /// Of the group: the rows that FILTER lets pass and whose value is not NULL, and their values.
    rows: Rows,
    values: Values,
}

enum Values {
    None,
    Numbers(Box<Numbers>),
    Fixed(Box<Fixeds>),
}

/// How core comes to an argument's value.
enum General {
    Nothing,
    Column(i32),
    Expression(*mut pg_sys::ExprState),
}

/// Whether a node computes aggregates. No other of ours is of no relation.
pub unsafe fn is_aggregate(node: *mut pg_sys::ForeignScanState) -> bool {
    // SAFETY: an initialized node.
    unsafe {
        (*(*node).ss.ps.plan.cast::<pg_sys::ForeignScan>())
            .scan
            .scanrelid
            == 0
    }
}

unsafe fn state<'a>(node: *mut pg_sys::ForeignScanState) -> &'a mut Aggregation {
    // SAFETY: Begin stored it there; it lives as long as the query's memory context.
    unsafe { &mut *(*node).fdw_state.cast::<Aggregation>() }
}

pub unsafe fn begin(node: *mut pg_sys::ForeignScanState, flags: std::ffi::c_int) {
    // SAFETY: an initialized node of a plan of ours, as is the one below it; the current memory context is the query's.
    unsafe {
        let plan = (*node).ss.ps.plan.cast::<pg_sys::ForeignScan>();
        let aggregates: Vec<_> = items::<pg_sys::TargetEntry>((*plan).fdw_scan_tlist)
            .into_iter()
            .map(|target| (*target).expr.cast::<pg_sys::Aggref>())
            .collect();
        for aggregate in &aggregates {
            rights::check((**aggregate).aggfnoid);
        }
        if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0 {
            return;
        }
        let below = (*node).ss.ps.lefttree.cast::<pg_sys::ForeignScanState>();
        let scanned = (*(*below).ss.ps.plan.cast::<pg_sys::ForeignScan>())
            .scan
            .scanrelid;
        let row_type = (*(*below).ss.ss_currentRelation).rd_att;
        let mut compiler = Compiler::new(scanned, row_type);
        let context = (*(*node).ss.ps.state).es_query_cxt;
        let mut calls = Vec::with_capacity(aggregates.len());
        for aggregate in aggregates {
            let call = Call::new(&mut compiler, &*aggregate)
                .expect("what was planned as an aggregate of ours is one");
            let parent = below.cast();
            let compiled = |expression| pg_sys::ExecInitExpr(expression, parent);
            calls.push(Running {
                general: General::of(&call, || compiled(argument_of(&*aggregate))),
                general_filter: compiled((*aggregate).aggfilter),
                accumulator: Accumulator::new(call.function, call.input, context),
                rows: 0,
                values: match call.argument {
                    Argument::Number(_) => Values::Numbers(Box::new([0; ROWS])),
                    Argument::Numeric(_) => Values::Fixed(Box::new([Fixed::default(); ROWS])),
                    Argument::Nothing | Argument::Presence(_) => Values::None,
                },
                call,
            });
        }
        let aggregation = Aggregation {
            below,
            calls,
            layout: Layout::new(row_type, compiler.columns),
            parameters: compiler.parameters,
            group: Group::new(),
            is_general: COMPILED_STATEMENTS.get() == CompiledStatements::Off,
            is_done: false,
        };
        (*node).fdw_state = keep(node, aggregation).cast();
    }
}

/// Begins anew. The scan below does so by itself, or when it is asked for rows.
pub unsafe fn rewind(node: *mut pg_sys::ForeignScanState) {
    // SAFETY: a node that went through Begin.
    unsafe { state(node) }.is_done = false;
}

/// The one row, then none; the current memory context is the node's for a row.
pub unsafe fn iterate(node: *mut pg_sys::ForeignScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node that went through Begin; its scan slot has a column for each aggregate.
    unsafe {
        let slot = (*node).ss.ss_ScanTupleSlot;
        let aggregation = state(node);
        tuple::clear(slot);
        if std::mem::replace(&mut aggregation.is_done, true) {
            return slot;
        }
        aggregation.run();
        for (at, running) in aggregation.calls.iter_mut().enumerate() {
            let result = running.accumulator.result();
            *(*slot).tts_values.add(at) = result.unwrap_or(pg_sys::Datum::from(0));
            *(*slot).tts_isnull.add(at) = result.is_none();
            running.accumulator.clear();
        }
        pg_sys::ExecStoreVirtualTuple(slot)
    }
}

/// In a re-evaluation (EvalPlanQual) core asks here for a node of no relation: a subquery's, whose rows are those of the first evaluation.
pub unsafe fn recheck(
    node: *mut pg_sys::ForeignScanState,
    _slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: a node of ours; the slot is its scan slot.
    unsafe {
        if !is_aggregate(node) {
            return true;
        }
        let memory = (*(*node).ss.ps.ps_ExprContext).ecxt_per_tuple_memory;
        let old = pg_sys::MemoryContextSwitchTo(memory);
        let slot = iterate(node);
        pg_sys::MemoryContextSwitchTo(old);
        (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 == 0
    }
}

impl Aggregation {
    /// Takes all rows of the scan.
    unsafe fn run(&mut self) {
        // SAFETY: the node below went through Begin.
        unsafe {
            let below = self.below.cast::<pg_sys::PlanState>();
            // What core does before it asks a node for a row.
            if !(*below).chgParam.is_null() {
                pg_sys::ExecReScan(below);
            }
            let instrument = (*below).instrument;
            if !instrument.is_null() {
                pg_sys::InstrStartNode(instrument);
            }
            for running in &mut self.calls {
                running.accumulator.clear();
            }
            let mut passed = 0;
            let scan = scan_state(self.below);
            loop {
                let is_more = scan.fill(&mut self.group, (*below).ps_ExprContext);
                passed += self.take_group();
                if interrupts::is_pending() {
                    interrupts::check_for_interrupts();
                }
                if !is_more {
                    break;
                }
            }
            if !instrument.is_null() {
                pg_sys::InstrStopNode(instrument, passed as f64);
            }
        }
    }

    /// Takes the group's rows; how many passed the conditions.
    unsafe fn take_group(&mut self) -> u64 {
        // SAFETY: the rows are the scan's, whose snapshot keeps them; context and conditions are its node's.
        unsafe {
            let below = &mut (*self.below).ss.ps;
            let context = below.ps_ExprContext;
            let all = self.group.all();
            let (passing, unsure) = match scan_state(self.below).filter() {
                Some(filter) => filter.look_at(&self.group, context),
                None => (all, 0),
            };
            // What the filter leaves to core: rows that pass its part of the conditions, or those that it is not sure of.
            let asked = match below.qual.is_null() {
                true => unsure,
                false => passing | unsure,
            };
            if asked != 0 || self.is_general || !self.evaluate(passing, context) {
                return self.take_each(passing | unsure, asked);
            }
            for running in &mut self.calls {
                running.add_group();
            }
            let passed = passing.count_ones();
            if !below.instrument.is_null() {
                (*below.instrument).nfiltered1 += f64::from(all.count_ones() - passed);
            }
            passed.into()
        }
    }

    /// Evaluates arguments and FILTERs for rows of the group; false: core has to be asked about one.
    unsafe fn evaluate(&mut self, rows: Rows, context: *mut pg_sys::ExprContext) -> bool {
        let groups = Groups {
            group: &self.group,
            layout: &self.layout,
            parameters: &self.parameters,
            context,
        };
        self.calls
            .iter_mut()
            // SAFETY: rows of the layout's table.
            .all(|running| unsafe { running.evaluate(&groups, rows) })
    }

    /// Takes some of the group's rows one by one, those that core is asked about when it was; how many passed the conditions.
    unsafe fn take_each(&mut self, rows: Rows, asked: Rows) -> u64 {
        // SAFETY: as for `take_group`.
        unsafe {
            let scan = scan_state(self.below);
            let below = &mut (*self.below).ss.ps;
            let (slot, context) = ((*self.below).ss.ss_ScanTupleSlot, below.ps_ExprContext);
            let mut passed = 0;
            for at in members(rows) {
                pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
                tuple::point(&mut scan.tuple, self.group.version(at), scan.relation);
                tuple::store(slot, &raw mut scan.tuple);
                (*context).ecxt_scantuple = slot;
                let is_passed = asked & 1 << at == 0
                    || (scan.filter().is_none_or(|filter| filter.ask(context))
                        && passes(below.qual, context));
                if is_passed {
                    passed += 1;
                    for running in &mut self.calls {
                        running.add_row(slot, context);
                    }
                }
                if interrupts::is_pending() {
                    interrupts::check_for_interrupts();
                }
            }
            tuple::clear(slot);
            if !below.instrument.is_null() {
                let looked_at = self.group.length() as u64;
                (*below.instrument).nfiltered1 += (looked_at - passed) as f64;
            }
            passed
        }
    }
}

impl Running {
    /// Evaluates FILTER and argument for rows of a group; false: core has to be asked about one.
    #[inline]
    unsafe fn evaluate(&mut self, groups: &Groups<'_>, rows: Rows) -> bool {
        let mut rows = rows;
        // SAFETY: rows of the layout's table.
        unsafe {
            if let Some(filter) = &self.call.filter {
                let answer = groups.condition(filter, rows);
                if answer.unsure != 0 {
                    return false;
                }
                rows = answer.yes;
            }
            let lacking = match (&self.call.argument, &mut self.values) {
                (Argument::Number(number), Values::Numbers(values)) => {
                    groups.numbers(number, rows, values)
                }
                (Argument::Numeric(column), Values::Fixed(values)) => {
                    numerics(groups, *column, rows, values)
                }
                (Argument::Presence(column), _) => presence(groups, *column, rows),
                _ => Lacking::default(),
            };
            self.rows = rows & !lacking.null;
            lacking.unsure == 0
        }
    }

    /// Adds what was evaluated of the group.
    #[inline]
    unsafe fn add_group(&mut self) {
        match &self.values {
            Values::None => self.accumulator.add_rows(self.rows.count_ones()),
            Values::Numbers(values) => self.accumulator.add_numbers(self.rows, values),
            // SAFETY: numbers of the rows.
            Values::Fixed(values) => unsafe { self.accumulator.add_fixed(self.rows, values) },
        }
    }

    /// Adds the row in the slot, as core evaluates FILTER and argument.
    unsafe fn add_row(
        &mut self,
        slot: *mut pg_sys::TupleTableSlot,
        context: *mut pg_sys::ExprContext,
    ) {
        // SAFETY: the slot has the row, and is the context's; what is evaluated lives until the next row.
        unsafe {
            let old = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
            let is_counted = self.general_filter.is_null() || {
                let (answer, is_null) = evaluate(self.general_filter, context);
                !is_null && answer.value() & 1 != 0
            };
            let value = match is_counted {
                true => self.general.value(slot, context),
                false => None,
            };
            if let Some(value) = value {
                match (&self.call.argument, self.call.input) {
                    (Argument::Numeric(_), _) => {
                        let flat = pg_sys::pg_detoast_datum(value.cast_mut_ptr());
                        let fixed = payload(flat.cast()).and_then(Fixed::read);
                        self.accumulator.add_numeric(flat.into(), fixed);
                    }
                    (Argument::Number(_), super::functions::Input::Number(kind)) => {
                        self.accumulator.add_number(kind.of_datum(value));
                    }
                    _ => self.accumulator.add_rows(1),
                }
            }
            pg_sys::MemoryContextSwitchTo(old);
        }
    }
}

impl General {
    unsafe fn of(call: &Call, compiled: impl FnOnce() -> *mut pg_sys::ExprState) -> General {
        match &call.argument {
            Argument::Nothing => General::Nothing,
            Argument::Presence(column)
            | Argument::Numeric(column)
            | Argument::Number(Number::Column(column, _)) => General::Column(*column as i32 + 1),
            Argument::Number(_) => General::Expression(compiled()),
        }
    }

    /// The argument's value; `None`: NULL.
    unsafe fn value(
        &self,
        slot: *mut pg_sys::TupleTableSlot,
        context: *mut pg_sys::ExprContext,
    ) -> Option<pg_sys::Datum> {
        // SAFETY: as for `add_row`; a column is taken out of the row before it is read.
        unsafe {
            let (value, is_null) = match *self {
                General::Nothing => (pg_sys::Datum::from(0), false),
                General::Column(number) => {
                    if i32::from((*slot).tts_nvalid) < number {
                        pg_sys::slot_getsomeattrs_int(slot, number);
                    }
                    let at = number as usize - 1;
                    (*(*slot).tts_values.add(at), *(*slot).tts_isnull.add(at))
                }
                General::Expression(state) => evaluate(state, context),
            };
            (!is_null).then_some(value)
        }
    }
}

/// Of which rows a column is NULL.
unsafe fn presence(groups: &Groups<'_>, column: usize, rows: Rows) -> Lacking {
    let mut lacking = Lacking::default();
    for at in members(rows) {
        // SAFETY: a row of the layout's table.
        match unsafe { groups.layout.find(&groups.group.row(at), column) } {
            Found::At(_) => {}
            Found::Null => lacking.null |= 1 << at,
            Found::Younger => lacking.unsure |= 1 << at,
        }
    }
    lacking
}

/// The values of a column of type numeric; core has to be asked about those that do not fit.
unsafe fn numerics(groups: &Groups<'_>, column: usize, rows: Rows, values: &mut Fixeds) -> Lacking {
    let mut lacking = Lacking::default();
    for at in members(rows) {
        // SAFETY: a row of the layout's table; the column is a varlena.
        match unsafe { groups.layout.find(&groups.group.row(at), column) } {
            // SAFETY: as above.
            Found::At(place) => match unsafe { payload(place) }.and_then(Fixed::read) {
                Some(value) => values[at] = value,
                None => lacking.unsure |= 1 << at,
            },
            Found::Null => lacking.null |= 1 << at,
            Found::Younger => lacking.unsure |= 1 << at,
        }
    }
    lacking
}
