//! Evaluating compiled expressions: core's inline functions.
use crate::pg::memory;
use crate::pg::node::{Any, Node};
use crate::pg::parameters::Parameters;
use pgrx::pg_sys;
use std::ptr;

/// Where a value of a statement comes from. Constants and the client's parameters, which most
/// arguments are, need no compiled expression.
#[derive(Clone, Copy)]
pub enum Value {
    Constant(pg_sys::Datum, bool),
    /// PARAM_EXTERN by number and type; the expression is for the error when the caller gave no
    /// such value.
    Parameter(i32, pg_sys::Oid, *mut pg_sys::Expr),
    Compiled(*mut pg_sys::ExprState),
}

impl Value {
    /// Compiles an expression of `node`'s plan; NULL: of no node's, then without subplans and
    /// parameters of the executor.
    ///
    /// # Safety
    /// An expression of a finished plan, which lives as long as the value.
    pub unsafe fn new(expression: *mut pg_sys::Expr, node: *mut pg_sys::PlanState) -> Value {
        // SAFETY: the caller's expression.
        let tree = unsafe { Any::enter(expression.cast()) };
        if let Some(constant) = tree.cast::<pg_sys::Const>() {
            return Value::Constant(constant.constvalue(), constant.constisnull());
        }
        let is_extern = |parameter: &Node<'_, pg_sys::Param>| {
            parameter.paramkind() == pg_sys::ParamKind::PARAM_EXTERN
        };
        match tree.cast::<pg_sys::Param>().filter(is_extern) {
            Some(found) => Value::Parameter(found.paramid(), found.paramtype(), expression),
            // SAFETY: the caller's expression and node.
            None => Value::Compiled(unsafe { pg_sys::ExecInitExpr(expression, node) }),
        }
    }

    /// The value now, in the current memory context.
    ///
    /// # Safety
    /// The context is the one of the node the value was compiled for, and has the rows that the
    /// expression reads.
    #[inline]
    pub unsafe fn get(&self, context: *mut pg_sys::ExprContext) -> (pg_sys::Datum, bool) {
        match *self {
            Value::Constant(datum, is_null) => (datum, is_null),
            Value::Parameter(number, kind, expression) => {
                // SAFETY: the caller's context.
                let found = unsafe { parameter(context, number, kind) };
                found.unwrap_or_else(|| {
                    // SAFETY: the value's own expression, which is of no node's; the caller's
                    // context.
                    unsafe { evaluate(pg_sys::ExecInitExpr(expression, ptr::null_mut()), context) }
                })
            }
            // SAFETY: the caller's context.
            Value::Compiled(state) => unsafe { evaluate(state, context) },
        }
    }
}

/// A parameter as `ExecEvalParamExtern` finds it; `None` where that would raise.
///
/// # Safety
/// A live context.
#[inline]
pub unsafe fn parameter(
    context: *mut pg_sys::ExprContext,
    number: i32,
    kind: pg_sys::Oid,
) -> Option<(pg_sys::Datum, bool)> {
    // SAFETY: the caller's context has a list that is as live, or none.
    let list = unsafe { Parameters::enter_if_any((*context).ecxt_param_list_info) }?;
    let found = list.get(number)?;
    (found.ptype == kind).then_some((found.value, found.isnull))
}

/// `ExecEvalExpr`, in the current memory context.
///
/// # Safety
/// A compiled expression, and its node's context, which has the rows that the expression reads.
pub unsafe fn evaluate(
    state: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
) -> (pg_sys::Datum, bool) {
    let mut is_null = false;
    // SAFETY: a compiled expression of the context's node; the closure holds the one call, which
    // may raise.
    let datum = unsafe {
        let function = (*state)
            .evalfunc
            .expect("a compiled expression has a function");
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            function(state, context, &mut is_null)
        })
    };
    (datum, is_null)
}

/// `ExecQual`: whether the tuples of the context pass; no expression lets all pass.
///
/// # Safety
/// As of [`evaluate`], if there is an expression, which is a qualification.
pub unsafe fn passes(state: *mut pg_sys::ExprState, context: *mut pg_sys::ExprContext) -> bool {
    if state.is_null() {
        return true;
    }
    // SAFETY: the caller's.
    let answer = || unsafe { evaluate(state, context) };
    // SAFETY: intermediate values go to the context's memory for one row.
    let (datum, _) = unsafe { memory::within((*context).ecxt_per_tuple_memory, answer) };
    // A qualification is never NULL.
    datum.value() & 1 != 0
}

/// Empties a slot of any kind: `ExecClearTuple`.
///
/// # Safety
/// An initialized slot.
pub unsafe fn clear(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the caller's slot.
    let slot = unsafe { Node::enter(slot) };
    if slot.is_virtual_of_nothing() {
        slot.empty();
    } else {
        slot.clear();
    }
}

/// `ExecProject`: fills the projection's slot.
pub unsafe fn project(projection: *mut pg_sys::ProjectionInfo) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as for `project_and`.
    unsafe { project_and(projection, |slot| slot) }
}

/// `ExecProject`, and the row to its receiver, under one guard; false: the receiver wants no more.
pub unsafe fn project_to(
    projection: *mut pg_sys::ProjectionInfo,
    receiver: *mut pg_sys::DestReceiver,
) -> bool {
    // SAFETY: as for `project_and`; a receiver between startup and shutdown.
    unsafe {
        let receive = (*receiver).receiveSlot.expect("a receiver's function");
        #[allow(ffi_unwind_calls)]
        project_and(projection, |slot| receive(slot, receiver))
    }
}

/// Fills the projection's slot, and does `then` with it under the same guard. Both may raise, so
/// `then` must have nothing to drop.
#[inline(always)]
unsafe fn project_and<R: Copy>(
    projection: *mut pg_sys::ProjectionInfo,
    then: impl Fn(*mut pg_sys::TupleTableSlot) -> R,
) -> R {
    // SAFETY: a projection of core's (caller) has an expression, a context and a slot.
    let (state, context, slot, function) = unsafe {
        let state = &raw mut (*projection).pi_state;
        let context = (*projection).pi_exprContext;
        (state, context, (*state).resultslot, (*state).evalfunc)
    };
    let evaluate = function.expect("a compiled expression has a function");
    // SAFETY: the projection's own slot, which ExecProject clears before it evaluates into it.
    unsafe { clear(slot) };
    // SAFETY: the projection's own expression, context and slot. The closure has nothing to drop.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            let mut is_null = false;
            let old = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
            #[allow(ffi_unwind_calls)]
            evaluate(state, context, &mut is_null);
            pg_sys::MemoryContextSwitchTo(old);
            (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
            (*slot).tts_nvalid = (*(*slot).tts_tupleDescriptor).natts as i16;
            then(slot)
        })
    }
}
