//! Parameters of the client, of a PL/pgSQL function and of the nodes above: fetched when a row
//! first needs them, and kept until the scan begins anew. Core fetches them for every row; within a
//! scan they stay what they are.
use crate::executor::expressions::parameter;
use mot_programs::filter::{Known, ParameterValues, Sure, Unsure, WordKind};
use mot_programs::varlena::payload;
use pgrx::pg_sys;
use std::cell::OnceCell;

/// Where a parameter's value is.
#[derive(Clone, Copy, PartialEq)]
pub enum Source {
    /// By number and type.
    Extern(i32, pg_sys::Oid),
    /// In the executor's array.
    Exec(i32),
}

/// What a parameter is taken as.
#[derive(Clone, Copy, PartialEq)]
pub enum Form {
    Number(WordKind),
    Text,
}

struct Parameter {
    source: Source,
    form: Form,
    known: OnceCell<Known>,
}

#[derive(Default)]
pub struct Parameters(Vec<Parameter>);

impl Parameters {
    /// The parameter's number here.
    pub fn add(&mut self, source: Source, form: Form) -> usize {
        self.0.push(Parameter {
            source,
            form,
            known: OnceCell::new(),
        });
        self.0.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets the values.
    pub fn forget(&mut self) {
        for parameter in &mut self.0 {
            parameter.known.take();
        }
    }
}

/// Parameters as a node or statement has them.
pub struct Bound<'a> {
    parameters: &'a Parameters,
    context: *mut pg_sys::ExprContext,
}

impl Parameters {
    /// With the context in which they are looked up.
    ///
    /// # Safety
    /// The context of the node the filter belongs to; it lives as long as what is returned.
    #[inline]
    pub unsafe fn bound(&self, context: *mut pg_sys::ExprContext) -> Bound<'_> {
        Bound {
            parameters: self,
            context,
        }
    }
}

impl ParameterValues for Bound<'_> {
    #[inline]
    fn value(&self, number: usize) -> Sure<&Known> {
        let parameter = &self.parameters.0[number];
        if let Some(known) = parameter.known.get() {
            return Ok(known);
        }
        // SAFETY: the node's context lives (`Parameters::bound`).
        let known = unsafe { parameter.fetch(self.context) }.ok_or(Unsure)?;
        Ok(parameter.known.get_or_init(|| known))
    }
}

impl Parameter {
    #[cold]
    unsafe fn fetch(&self, context: *mut pg_sys::ExprContext) -> Option<Known> {
        // SAFETY: the context's own arrays; a hook that gives values may allocate, as it may for
        // core.
        unsafe {
            let (datum, is_null) = match self.source {
                Source::Extern(number, kind) => {
                    let old = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
                    let found = parameter(context, number, kind);
                    pg_sys::MemoryContextSwitchTo(old);
                    found?
                }
                Source::Exec(number) => {
                    let values = (*context).ecxt_param_exec_vals;
                    if values.is_null() {
                        return None;
                    }
                    let value = &*values.add(number as usize);
                    if !value.execPlan.is_null() {
                        return None;
                    }
                    (value.value, value.isnull)
                }
            };
            if is_null {
                return Some(Known::Null);
            }
            match self.form {
                Form::Number(kind) => Some(Known::Number(kind.of_word(datum.value() as u64))),
                Form::Text => Some(Known::Text(short_payload(datum.cast_mut_ptr())?.into())),
            }
        }
    }
}

/// Texts of a statement up to so many bytes are kept with a filter, in a copy: memory that no
/// statement's end gives back, and whose lack would end the server. A longer one core takes from
/// where it is.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// The same as [`payload`], if it is short enough to be kept.
///
/// # Safety
/// As for [`payload`].
pub unsafe fn short_payload<'a>(place: *const u8) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    unsafe { payload(place) }.filter(|bytes| bytes.len() <= KEPT_BYTES_MAX)
}
