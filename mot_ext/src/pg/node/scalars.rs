//! Core's lists of numbers and of oids.
use pgrx::pg_sys::{self, Oid};
use std::marker::PhantomData;

/// A list of core's, of numbers or of oids; empty where the pointer is NULL.
#[derive(Clone, Copy)]
pub struct Scalars<'p> {
    pointer: *mut pg_sys::List,
    time: PhantomData<&'p pg_sys::List>,
}

impl<'p> Scalars<'p> {
    /// A view of a list, or of NULL.
    ///
    /// # Safety
    /// A list that is live for `'p`, as [`super::Node::enter`] wants a node.
    #[inline]
    pub unsafe fn enter(pointer: *mut pg_sys::List) -> Scalars<'p> {
        Scalars {
            pointer,
            time: PhantomData,
        }
    }

    /// How many members it has.
    #[inline]
    pub fn len(self) -> usize {
        // SAFETY: NULL or a live list.
        unsafe { self.pointer.as_ref() }.map_or(0, |list| list.length as usize)
    }

    /// A member by its place, from 0.
    #[inline]
    fn cell(self, place: usize) -> Option<pg_sys::ListCell> {
        // SAFETY: the list has such a cell.
        (place < self.len()).then(|| unsafe { *(*self.pointer).elements.add(place) })
    }

    /// A number by its place, from 0.
    #[inline]
    pub fn number(self, place: usize) -> Option<i32> {
        // SAFETY: each bit pattern of a cell is a number.
        self.cell(place).map(|cell| unsafe { cell.int_value })
    }

    /// Its members as numbers.
    pub fn numbers(self) -> impl Iterator<Item = i32> + use<'p> {
        (0..self.len()).filter_map(move |place| self.number(place))
    }

    /// Its members as oids.
    pub fn oids(self) -> impl Iterator<Item = Oid> + use<'p> {
        // SAFETY: each bit pattern of a cell is an oid.
        let oid = |cell: pg_sys::ListCell| unsafe { cell.oid_value };
        (0..self.len()).filter_map(move |place| self.cell(place).map(oid))
    }
}
