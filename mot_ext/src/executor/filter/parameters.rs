//! Parameters of the client, of a PL/pgSQL function and of the nodes above: fetched when a row
//! first needs them, and kept until the scan begins anew. Core fetches them for every row; within a
//! scan they stay what they are.
use super::operators::Kind;
use super::program::{Unsure, short_payload};
use crate::executor::expressions::parameter;
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
    Number(Kind),
    Text,
}

/// A parameter's value.
pub enum Known {
    Null,
    Number(i64),
    Text(Box<[u8]>),
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

    /// The value. Unsure where core would raise an error, or compute it first.
    #[inline]
    pub unsafe fn get(
        &self,
        number: usize,
        context: *mut pg_sys::ExprContext,
    ) -> Result<&Known, Unsure> {
        let parameter = &self.0[number];
        if let Some(known) = parameter.known.get() {
            return Ok(known);
        }
        // SAFETY: the context of the node the filter belongs to (caller).
        let known = unsafe { parameter.fetch(context) }.ok_or(Unsure)?;
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
                Form::Number(kind) => Some(Known::Number(kind.of_datum(datum))),
                Form::Text => Some(Known::Text(short_payload(datum.cast_mut_ptr())?.into())),
            }
        }
    }
}
