//! Arrays as values.
use pgrx::pg_sys;
use std::ffi::c_char;
use std::ptr;

/// The members of an array, of which some may be NULL. They point into it, or into what is
/// unpacked of it in the current memory context.
///
/// # Safety
/// An array.
pub unsafe fn members(array: pg_sys::Datum) -> Vec<Option<pg_sys::Datum>> {
    let (mut width, mut by_value, mut align) = (0, false, 0);
    let (mut values, mut nulls, mut count) = (ptr::null_mut(), ptr::null_mut(), 0);
    // SAFETY: the caller's array, whose type says how its members lie. Core fills the places with
    // arrays of as many places as it says.
    unsafe {
        let array = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
        let member = (*array).elemtype;
        pg_sys::get_typlenbyvalalign(member, &raw mut width, &raw mut by_value, &raw mut align);
        let width = i32::from(width);
        let places = (&raw mut values, &raw mut nulls, &raw mut count);
        let (into, nulls_into, count_into) = places;
        pg_sys::deconstruct_array(
            array, member, width, by_value, align, into, nulls_into, count_into,
        );
        (0..count as usize)
            .map(|at| (!*nulls.add(at)).then(|| *values.add(at)))
            .collect()
    }
}

/// An array of byte strings, in the current memory context.
///
/// # Safety
/// Each member is a byte string.
pub unsafe fn of_bytes(members: &mut [pg_sys::Datum]) -> pg_sys::Datum {
    let (count, align) = (members.len() as i32, pg_sys::TYPALIGN_INT as c_char);
    // SAFETY: the caller's members, which are copied.
    pg_sys::Datum::from(unsafe {
        pg_sys::construct_array(
            members.as_mut_ptr(),
            count,
            pg_sys::BYTEAOID,
            -1,
            false,
            align,
        )
    })
}
