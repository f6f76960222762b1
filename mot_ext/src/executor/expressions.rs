//! Evaluating compiled expressions: core's inline functions.
use pgrx::pg_sys;

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
    /// parameters of the executor. The expression must live as long as the value.
    pub unsafe fn new(expression: *mut pg_sys::Expr, node: *mut pg_sys::PlanState) -> Value {
        // SAFETY: an expression of a finished plan; casts by tag.
        unsafe {
            match (*expression.cast::<pg_sys::Node>()).type_ {
                pg_sys::NodeTag::T_Const => {
                    let constant = &*expression.cast::<pg_sys::Const>();
                    Value::Constant(constant.constvalue, constant.constisnull)
                }
                pg_sys::NodeTag::T_Param
                    if (*expression.cast::<pg_sys::Param>()).paramkind
                        == pg_sys::ParamKind::PARAM_EXTERN =>
                {
                    let parameter = &*expression.cast::<pg_sys::Param>();
                    Value::Parameter(parameter.paramid, parameter.paramtype, expression)
                }
                _ => Value::Compiled(pg_sys::ExecInitExpr(expression, node)),
            }
        }
    }

    /// The value now, in the current memory context.
    #[inline]
    pub unsafe fn get(&self, context: *mut pg_sys::ExprContext) -> (pg_sys::Datum, bool) {
        // SAFETY: the context is the one of the node the value was compiled for.
        unsafe {
            match *self {
                Value::Constant(datum, is_null) => (datum, is_null),
                Value::Parameter(number, kind, expression) => parameter(context, number, kind)
                    .unwrap_or_else(|| {
                        let state = pg_sys::ExecInitExpr(expression, std::ptr::null_mut());
                        evaluate(state, context)
                    }),
                Value::Compiled(state) => evaluate(state, context),
            }
        }
    }
}

/// A parameter as `ExecEvalParamExtern` finds it; `None` where that would raise.
#[inline]
pub unsafe fn parameter(
    context: *mut pg_sys::ExprContext,
    number: i32,
    kind: pg_sys::Oid,
) -> Option<(pg_sys::Datum, bool)> {
    // SAFETY: the context's parameter list, if any, has `numParams` values or a hook that gives
    // them; the hook may raise.
    unsafe {
        let list = (*context).ecxt_param_list_info;
        if list.is_null() || number <= 0 || number > (*list).numParams {
            return None;
        }
        let mut room = std::mem::zeroed::<pg_sys::ParamExternData>();
        let found = match (*list).paramFetch {
            Some(fetch) => pg_sys::ffi::pg_guard_ffi_boundary(|| {
                #[allow(ffi_unwind_calls)]
                fetch(list, number, false, &raw mut room)
            }),
            None => (*list).params.as_mut_ptr().add(number as usize - 1),
        };
        ((*found).ptype == kind).then_some(((*found).value, (*found).isnull))
    }
}

/// `ExecEvalExpr`, in the current memory context.
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
pub unsafe fn passes(state: *mut pg_sys::ExprState, context: *mut pg_sys::ExprContext) -> bool {
    if state.is_null() {
        return true;
    }
    // SAFETY: see `evaluate`; intermediate values go to the context's per-tuple memory. A
    // qualification is never NULL.
    unsafe {
        let old = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
        let (datum, _) = evaluate(state, context);
        pg_sys::MemoryContextSwitchTo(old);
        datum.value() & 1 != 0
    }
}

/// Empties a slot of any kind: `ExecClearTuple`.
pub unsafe fn clear(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: core's slot; only one that is empty, or virtual and owns nothing, is emptied by hand.
    unsafe {
        let is_virtual = std::ptr::eq((*slot).tts_ops, &raw const pg_sys::TTSOpsVirtual);
        if is_virtual && (*slot).tts_flags & pg_sys::TTS_FLAG_SHOULDFREE as u16 == 0 {
            (*slot).tts_nvalid = 0;
            (*slot).tts_flags |= pg_sys::TTS_FLAG_EMPTY as u16;
            (*slot).tts_tid.ip_posid = 0;
            return;
        }
        let clear = (*(*slot).tts_ops).clear.expect("a slot's function");
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            clear(slot)
        });
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
    // SAFETY: a projection of core's; clearing its slot before evaluating into it is what
    // ExecProject does. The closure has nothing to drop.
    unsafe {
        let state = &raw mut (*projection).pi_state;
        let context = (*projection).pi_exprContext;
        let slot = (*state).resultslot;
        let evaluate = (*state)
            .evalfunc
            .expect("a compiled expression has a function");
        clear(slot);
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
