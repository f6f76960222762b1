//! Evaluating compiled expressions: core's inline functions.
use pgrx::pg_sys;

/// `ExecEvalExpr`, in the current memory context.
pub unsafe fn evaluate(
    state: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
) -> (pg_sys::Datum, bool) {
    let mut is_null = false;
    // SAFETY: a compiled expression of the context's node; the closure holds the one call, which may raise.
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
    // SAFETY: see `evaluate`; intermediate values go to the context's per-tuple memory. A qualification is never NULL.
    unsafe {
        let old = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
        let (datum, _) = evaluate(state, context);
        pg_sys::MemoryContextSwitchTo(old);
        datum.value() & 1 != 0
    }
}

/// `ExecProject`: fills the projection's slot.
pub unsafe fn project(projection: *mut pg_sys::ProjectionInfo) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a projection of core's; clearing its slot before evaluating into it is what ExecProject does.
    unsafe {
        let state = &raw mut (*projection).pi_state;
        let context = (*projection).pi_exprContext;
        let slot = (*state).resultslot;
        super::tuple::clear(slot);
        let old = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
        evaluate(state, context);
        pg_sys::MemoryContextSwitchTo(old);
        (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
        (*slot).tts_nvalid = (*(*slot).tts_tupleDescriptor).natts as i16;
        slot
    }
}

/// Memory that core empties before each row.
pub unsafe fn per_tuple_memory(estate: *mut pg_sys::EState) -> pg_sys::MemoryContext {
    // SAFETY: a live executor state; the context is made at first use, as GetPerTupleExprContext does.
    unsafe {
        if (*estate).es_per_tuple_exprcontext.is_null() {
            pg_sys::MakePerTupleExprContext(estate);
        }
        (*(*estate).es_per_tuple_exprcontext).ecxt_per_tuple_memory
    }
}
