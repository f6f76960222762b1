//! Comparing with AVX-512: eight cells or sixteen halves at a time, as the unsigned numbers they
//! are, into a register of bits.
//!
//! Only vectors are used that no SSE or AVX2 instruction has (16 and on). So none of the
//! instructions that follow is slowed, and nothing has to be cleared.

use super::{AtomicU32, AtomicU64, LANES};
use core::arch::asm;

/// Instructions with vectors.
macro_rules! with_vectors {
    ($($instruction:literal,)+ $($name:ident = $kind:ident(reg) $operand:expr,)+) => {
        asm!(
            $($instruction,)+
            $($name = $kind(reg) $operand,)+
            out("xmm16") _, out("k1") _, out("k2") _, out("k3") _,
            options(nostack, preserves_flags),
        )
    };
}

#[inline(always)]
pub(super) fn equal(cells: &[AtomicU64; LANES], wanted: u64) -> u32 {
    let bits: u32;
    // SAFETY: reads the 128 bytes of `cells`, with instructions the caller has looked for; the
    // registers it changes are named. Without `nomem` the compiler moves no other access over it.
    unsafe {
        with_vectors!(
            "vpbroadcastq zmm16, {wanted}",
            "vpcmpequq k1, zmm16, zmmword ptr [{cells}]",
            "vpcmpequq k2, zmm16, zmmword ptr [{cells} + 64]",
            "kunpckbw k1, k2, k1",
            "kmovw {bits:e}, k1",
            wanted = in(reg) wanted,
            cells = in(reg) cells.as_ptr(),
            bits = out(reg) bits,
        );
    }
    bits
}

#[inline(always)]
pub(super) fn at_most(cells: &[AtomicU64; LANES], bound: u64) -> u32 {
    let bits: u32;
    // SAFETY: as in `equal`.
    unsafe {
        with_vectors!(
            "vpbroadcastq zmm16, {bound}",
            // Not less than the cell.
            "vpcmpnltuq k1, zmm16, zmmword ptr [{cells}]",
            "vpcmpnltuq k2, zmm16, zmmword ptr [{cells} + 64]",
            "kunpckbw k1, k2, k1",
            "kmovw {bits:e}, k1",
            bound = in(reg) bound,
            cells = in(reg) cells.as_ptr(),
            bits = out(reg) bits,
        );
    }
    bits
}

#[inline(always)]
pub(super) fn equal_and_at_most(cells: &[AtomicU64; LANES], number: u64) -> (u32, u32) {
    let (equal, at_most): (u32, u32);
    // SAFETY: as in `equal`.
    unsafe {
        with_vectors!(
            "vpbroadcastq zmm16, {number}",
            "vpcmpequq k1, zmm16, zmmword ptr [{cells}]",
            "vpcmpequq k2, zmm16, zmmword ptr [{cells} + 64]",
            "kunpckbw k1, k2, k1",
            "vpcmpnltuq k2, zmm16, zmmword ptr [{cells}]",
            "vpcmpnltuq k3, zmm16, zmmword ptr [{cells} + 64]",
            "kunpckbw k2, k3, k2",
            "kmovw {equal:e}, k1",
            "kmovw {at_most:e}, k2",
            number = in(reg) number,
            cells = in(reg) cells.as_ptr(),
            equal = lateout(reg) equal,
            at_most = lateout(reg) at_most,
        );
    }
    (equal, at_most)
}

#[inline(always)]
pub(super) fn equal_halves(halves: &[AtomicU32; LANES], wanted: u32) -> u32 {
    let bits: u32;
    // SAFETY: reads the 64 bytes of `halves`, as in `equal`.
    unsafe {
        with_vectors!(
            "vpbroadcastd zmm16, {wanted:e}",
            "vpcmpequd k1, zmm16, zmmword ptr [{halves}]",
            "kmovw {bits:e}, k1",
            wanted = in(reg) wanted,
            halves = in(reg) halves.as_ptr(),
            bits = out(reg) bits,
        );
    }
    bits
}

#[inline(always)]
pub(super) fn halves_at_most(halves: &[AtomicU32; LANES], bound: u32) -> u32 {
    let bits: u32;
    // SAFETY: as in `equal_halves`.
    unsafe {
        with_vectors!(
            "vpbroadcastd zmm16, {bound:e}",
            "vpcmpnltud k1, zmm16, zmmword ptr [{halves}]",
            "kmovw {bits:e}, k1",
            bound = in(reg) bound,
            halves = in(reg) halves.as_ptr(),
            bits = out(reg) bits,
        );
    }
    bits
}

#[inline(always)]
pub(super) fn halves_equal_and_at_most(halves: &[AtomicU32; LANES], number: u32) -> (u32, u32) {
    let (equal, at_most): (u32, u32);
    // SAFETY: as in `equal_halves`.
    unsafe {
        with_vectors!(
            "vpbroadcastd zmm16, {number:e}",
            "vpcmpequd k1, zmm16, zmmword ptr [{halves}]",
            "vpcmpnltud k2, zmm16, zmmword ptr [{halves}]",
            "kmovw {equal:e}, k1",
            "kmovw {at_most:e}, k2",
            number = in(reg) number,
            halves = in(reg) halves.as_ptr(),
            equal = lateout(reg) equal,
            at_most = lateout(reg) at_most,
        );
    }
    (equal, at_most)
}
