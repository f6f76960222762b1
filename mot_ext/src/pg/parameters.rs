//! Parameters that a client, or a function, gives to a statement.
use pgrx::pg_sys;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The parameters of a statement, for the time `'p`.
#[derive(Clone, Copy)]
pub struct Parameters<'p> {
    list: NonNull<pg_sys::ParamListInfoData>,
    time: PhantomData<&'p pg_sys::ParamListInfoData>,
}

impl<'p> Parameters<'p> {
    /// A view of a list, or of NULL.
    ///
    /// # Safety
    /// NULL, or a list that is live for `'p`.
    #[inline]
    pub unsafe fn enter_if_any(list: pg_sys::ParamListInfo) -> Option<Parameters<'p>> {
        NonNull::new(list).map(|list| Parameters {
            list,
            time: PhantomData,
        })
    }

    /// A parameter by its number, from 1; `None`: there is none of this number. Raises what a hook
    /// raises that gives values.
    #[inline]
    pub fn get(self, number: i32) -> Option<pg_sys::ParamExternData> {
        let list = self.list.as_ptr();
        // SAFETY: a live list has so many values, or a hook that gives them.
        unsafe {
            if number <= 0 || number > (*list).numParams {
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
            Some(*found)
        }
    }
}
