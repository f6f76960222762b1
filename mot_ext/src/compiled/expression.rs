//! Expressions that are compiled over copies, in the memory of a form.
//!
//! What makes them is `unsafe` for one reason: the current memory context has to live as long as
//! the form. What evaluates them is so for another one: the rows that they are over have to be
//! shown in the context, filled, and of the type for which they were compiled.
use super::shape::Target;
use crate::executor::expressions::{self, Value};
use crate::pg::list::{items, list_of};
use crate::pg::node::{Any, Node, Owned};
use pgrx::pg_sys;

/// A copy of expressions, or of targets, in the current context.
fn copies<'p, T: 'p>(nodes: impl Iterator<Item = Node<'p, T>> + Clone) -> *mut pg_sys::List {
    // SAFETY: live nodes of a finished plan. The list is between two calls of core only.
    unsafe {
        let list = list_of(nodes.map(Node::as_ptr));
        pg_sys::copyObjectImpl(list.cast()).cast()
    }
}

/// Expressions, each with its value.
///
/// # Safety
/// The current memory context lives as long as the values.
pub unsafe fn compile_values(expressions: &[Any<'_>]) -> Vec<Value> {
    // SAFETY: a list of expressions, which live as long as the values (caller). They are of no
    // node's.
    unsafe {
        let copies = items::<pg_sys::Expr>(copies(expressions.iter().copied()));
        let value = |copy| Value::new(copy, std::ptr::null_mut());
        copies.into_iter().map(value).collect()
    }
}

/// Conditions that a row has to pass; without any all rows do.
pub struct Conditions(Option<Owned<pg_sys::ExprState>>);

impl Conditions {
    /// No conditions.
    pub const NONE: Conditions = Conditions(None);

    /// Compiles them.
    ///
    /// # Safety
    /// The current memory context lives as long as the value.
    pub unsafe fn compile(conditions: &[Any<'_>]) -> Conditions {
        if conditions.is_empty() {
            return Conditions::NONE;
        }
        let copies = copies(conditions.iter().copied());
        // SAFETY: a list of conditions; they live as long as the value (caller).
        Conditions(Some(unsafe {
            Owned::new(pg_sys::ExecInitQual(copies, std::ptr::null_mut()))
        }))
    }

    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the rows that are shown in a context pass.
    ///
    /// # Safety
    /// The rows that they are over are shown, filled, and of the types they were compiled for.
    #[inline]
    pub unsafe fn pass(&self, context: Node<'_, pg_sys::ExprContext>) -> bool {
        self.0.as_ref().is_none_or(|state| {
            // SAFETY: the caller's.
            unsafe { expressions::passes(state.as_ptr(), context.as_ptr()) }
        })
    }
}

/// One condition of which NULL passes, too.
pub struct Check(Owned<pg_sys::ExprState>);

impl Check {
    /// Plans and compiles it.
    ///
    /// # Safety
    /// The current memory context, in which the condition was made, lives as long as the value.
    pub unsafe fn compile(condition: Any<'_>) -> Check {
        // SAFETY: an expression of our own, which lives as long as the value (caller).
        Check(unsafe {
            let planned = pg_sys::expression_planner(condition.as_ptr().cast());
            Owned::new(pg_sys::ExecInitExpr(planned, std::ptr::null_mut()))
        })
    }

    /// Whether the row that is shown in a context passes, computed in the current memory context.
    ///
    /// # Safety
    /// As for [`Conditions::pass`].
    #[inline]
    pub unsafe fn passes(&self, context: Node<'_, pg_sys::ExprContext>) -> bool {
        // SAFETY: the caller's.
        let (passes, is_null) = unsafe { expressions::evaluate(self.0.as_ptr(), context.as_ptr()) };
        is_null || passes.value() & 1 != 0
    }
}

/// What fills a virtual slot with what targets compute.
pub struct Projection {
    state: Owned<pg_sys::ProjectionInfo>,
    row_type: Owned<pg_sys::TupleDescData>,
}

impl Projection {
    /// Compiles targets over rows that `context` shows, of type `input` if that is said.
    ///
    /// # Safety
    /// The current memory context and `context` live as long as the value.
    pub unsafe fn compile(
        targets: &[Target<'_>],
        context: Node<'_, pg_sys::ExprContext>,
        input: Option<Node<'_, pg_sys::TupleDescData>>,
    ) -> Projection {
        let targets = copies(targets.iter().copied());
        // SAFETY: a target list; what is made of it lives as long as the value (caller).
        unsafe {
            let row_type = pg_sys::ExecTypeFromTL(targets);
            Projection::new(targets, context, row_type, input)
        }
    }

    /// The same into rows of a type that is known.
    ///
    /// # Safety
    /// As for [`Projection::compile`]; the targets compute values of the type's columns. It lives
    /// as long as the value.
    pub unsafe fn compile_into(
        targets: &[Target<'_>],
        context: Node<'_, pg_sys::ExprContext>,
        row_type: Node<'_, pg_sys::TupleDescData>,
    ) -> Projection {
        let targets = copies(targets.iter().copied());
        // SAFETY: the caller's.
        unsafe { Projection::new(targets, context, row_type.as_ptr(), None) }
    }

    /// # Safety
    /// As for [`Projection::compile_into`].
    unsafe fn new(
        targets: *mut pg_sys::List,
        context: Node<'_, pg_sys::ExprContext>,
        row_type: *mut pg_sys::TupleDescData,
        input: Option<Node<'_, pg_sys::TupleDescData>>,
    ) -> Projection {
        let (none, input) = (
            std::ptr::null_mut(),
            input.map_or(std::ptr::null_mut(), Node::as_ptr),
        );
        // SAFETY: the caller's.
        unsafe {
            let slot = pg_sys::MakeSingleTupleTableSlot(row_type, &raw const pg_sys::TTSOpsVirtual);
            let context = context.as_ptr();
            let state = pg_sys::ExecBuildProjectionInfo(targets, context, slot, none, input);
            Projection {
                state: Owned::new(state),
                row_type: Owned::new(row_type),
            }
        }
    }

    /// The type of the rows that it gives.
    pub fn row_type(&self) -> Node<'_, pg_sys::TupleDescData> {
        self.row_type.view()
    }

    /// Fills its slot.
    ///
    /// # Safety
    /// As for [`Conditions::pass`].
    #[inline]
    pub unsafe fn project(&self) -> Node<'_, pg_sys::TupleTableSlot> {
        // SAFETY: the caller's. The slot lives as long as this.
        unsafe { Node::enter(expressions::project(self.state.as_ptr())) }
    }

    /// Fills its slot, and hands the row to a receiver; false: that wants no more.
    ///
    /// # Safety
    /// As for [`Conditions::pass`]; a receiver between startup and shutdown.
    #[inline]
    pub unsafe fn project_to(&self, receiver: Node<'_, pg_sys::DestReceiver>) -> bool {
        // SAFETY: the caller's.
        unsafe { expressions::project_to(self.state.as_ptr(), receiver.as_ptr()) }
    }
}
