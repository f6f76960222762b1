//! What EXPLAIN shows of a node.
use super::{Any, List, Node, views};
use crate::pg::list;
use crate::pg::version;
use pgrx::pg_sys;
use std::ffi::CStr;

views! {
    ExplainState {
        value analyze: bool,
        value verbose: bool,
    }
}

/// How a node's expressions are written.
#[derive(Clone, Copy)]
pub struct Names<'p> {
    context: List<'p, pg_sys::Node>,
    is_prefixed: bool,
}

impl<'p> Names<'p> {
    /// An expression of the node's plan, in the current memory context.
    pub fn text(self, expression: Any<'p>) -> &'p CStr {
        let (expression, context) = (expression.as_ptr(), self.context.as_ptr());
        // SAFETY: an expression of the plan that the names are of; core gives a new string.
        unsafe {
            let text = pg_sys::deparse_expression(expression, context, self.is_prefixed, false);
            CStr::from_ptr(text)
        }
    }
}

impl<'p> Node<'p, pg_sys::ExplainState> {
    /// How a node's expressions are written, which has these nodes above.
    pub fn names(
        self,
        node: Node<'p, pg_sys::PlanState>,
        ancestors: List<'p, pg_sys::Node>,
    ) -> Names<'p> {
        let plan = node.plan().as_ptr();
        // SAFETY: the state of an EXPLAIN under way, and a node of its plan.
        let (context, tables) = unsafe {
            let names = (*self.as_ptr()).deparse_cxt;
            let context = pg_sys::set_deparse_context_plan(names, plan, ancestors.as_ptr());
            (
                List::enter(context),
                version::tables_explained(self.as_ptr()),
            )
        };
        Names {
            context,
            is_prefixed: tables > 1 || self.verbose(),
        }
    }

    /// Shows a text.
    pub fn show_text(self, label: &CStr, text: &CStr) {
        // SAFETY: strings; the state of an EXPLAIN under way.
        unsafe { pg_sys::ExplainPropertyText(label.as_ptr(), text.as_ptr(), self.as_ptr()) };
    }

    /// Shows several texts.
    pub fn show_texts(self, label: &CStr, texts: &[&CStr]) {
        // SAFETY: strings, and a list of such; the state of an EXPLAIN under way.
        unsafe {
            let texts = list::list_of(texts.iter().map(|text| text.as_ptr().cast_mut()));
            pg_sys::ExplainPropertyList(label.as_ptr(), texts, self.as_ptr());
        }
    }

    /// Shows a number.
    pub fn show_number(self, label: &CStr, number: i64) {
        let no_unit = std::ptr::null();
        // SAFETY: a string; the state of an EXPLAIN under way.
        unsafe { pg_sys::ExplainPropertyInteger(label.as_ptr(), no_unit, number, self.as_ptr()) };
    }
}
