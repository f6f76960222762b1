//! Comparing with AVX2: four cells or eight halves at a time.

use super::{AtomicU32, AtomicU64, LANES};
use core::arch::asm;

/// Instructions with vectors. `vzeroupper`, without which the SSE code that follows would be slow,
/// takes the upper halves of all sixteen. A build for processors that have them may keep something
/// in any.
macro_rules! with_vectors {
    ($($instruction:literal,)+ $($name:ident = $kind:ident(reg) $operand:expr,)+) => {
        asm!(
            $($instruction,)+
            "vzeroupper",
            $($name = $kind(reg) $operand,)+
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack, preserves_flags),
        )
    };
}

/// Turns the order of unsigned numbers into that of signed ones.
const SIGN: u64 = 1 << 63;
/// The same for halves.
const SIGN_OF_HALF: u32 = 1 << 31;

#[inline(always)]
pub(super) fn equal(cells: &[AtomicU64; LANES], wanted: u64) -> u32 {
    let (a, b, c, d): (u32, u32, u32, u32);
    // SAFETY: reads the 128 bytes of `cells`, with instructions the caller has looked for; the
    // registers it changes are named. Without `nomem` the compiler moves no other access over it.
    unsafe {
        with_vectors!(
            "vmovq xmm0, {wanted}",
            "vpbroadcastq ymm0, xmm0",
            "vpcmpeqq ymm1, ymm0, ymmword ptr [{cells}]",
            "vpcmpeqq ymm2, ymm0, ymmword ptr [{cells} + 32]",
            "vpcmpeqq ymm3, ymm0, ymmword ptr [{cells} + 64]",
            "vpcmpeqq ymm4, ymm0, ymmword ptr [{cells} + 96]",
            "vmovmskpd {a:e}, ymm1",
            "vmovmskpd {b:e}, ymm2",
            "vmovmskpd {c:e}, ymm3",
            "vmovmskpd {d:e}, ymm4",
            wanted = in(reg) wanted,
            cells = in(reg) cells.as_ptr(),
            a = out(reg) a, b = out(reg) b, c = out(reg) c, d = out(reg) d,
        );
    }
    a | b << 4 | c << 8 | d << 12
}

#[inline(always)]
pub(super) fn at_most(cells: &[AtomicU64; LANES], bound: u64) -> u32 {
    let (a, b, c, d): (u32, u32, u32, u32);
    // SAFETY: as in `equal`.
    unsafe {
        with_vectors!(
            "vmovq xmm0, {bound}",
            "vmovq xmm5, {sign}",
            "vpbroadcastq ymm0, xmm0",
            "vpbroadcastq ymm5, xmm5",
            "vpxor ymm1, ymm5, ymmword ptr [{cells}]",
            "vpxor ymm2, ymm5, ymmword ptr [{cells} + 32]",
            "vpxor ymm3, ymm5, ymmword ptr [{cells} + 64]",
            "vpxor ymm4, ymm5, ymmword ptr [{cells} + 96]",
            "vpcmpgtq ymm1, ymm1, ymm0",
            "vpcmpgtq ymm2, ymm2, ymm0",
            "vpcmpgtq ymm3, ymm3, ymm0",
            "vpcmpgtq ymm4, ymm4, ymm0",
            "vmovmskpd {a:e}, ymm1",
            "vmovmskpd {b:e}, ymm2",
            "vmovmskpd {c:e}, ymm3",
            "vmovmskpd {d:e}, ymm4",
            bound = in(reg) bound ^ SIGN,
            sign = in(reg) SIGN,
            cells = in(reg) cells.as_ptr(),
            a = out(reg) a, b = out(reg) b, c = out(reg) c, d = out(reg) d,
        );
    }
    !(a | b << 4 | c << 8 | d << 12) & 0xFFFF
}

#[inline(always)]
pub(super) fn equal_halves(halves: &[AtomicU32; LANES], wanted: u32) -> u32 {
    let (a, b): (u32, u32);
    // SAFETY: reads the 64 bytes of `halves`, as in `equal`.
    unsafe {
        with_vectors!(
            "vmovd xmm0, {wanted:e}",
            "vpbroadcastd ymm0, xmm0",
            "vpcmpeqd ymm1, ymm0, ymmword ptr [{halves}]",
            "vpcmpeqd ymm2, ymm0, ymmword ptr [{halves} + 32]",
            "vmovmskps {a:e}, ymm1",
            "vmovmskps {b:e}, ymm2",
            wanted = in(reg) wanted,
            halves = in(reg) halves.as_ptr(),
            a = out(reg) a, b = out(reg) b,
        );
    }
    a | b << 8
}

#[inline(always)]
pub(super) fn halves_at_most(halves: &[AtomicU32; LANES], bound: u32) -> u32 {
    let (a, b): (u32, u32);
    // SAFETY: as in `equal_halves`.
    unsafe {
        with_vectors!(
            "vmovd xmm0, {bound:e}",
            "vmovd xmm3, {sign:e}",
            "vpbroadcastd ymm0, xmm0",
            "vpbroadcastd ymm3, xmm3",
            "vpxor ymm1, ymm3, ymmword ptr [{halves}]",
            "vpxor ymm2, ymm3, ymmword ptr [{halves} + 32]",
            "vpcmpgtd ymm1, ymm1, ymm0",
            "vpcmpgtd ymm2, ymm2, ymm0",
            "vmovmskps {a:e}, ymm1",
            "vmovmskps {b:e}, ymm2",
            bound = in(reg) bound ^ SIGN_OF_HALF,
            sign = in(reg) SIGN_OF_HALF,
            halves = in(reg) halves.as_ptr(),
            a = out(reg) a, b = out(reg) b,
        );
    }
    !(a | b << 8) & 0xFFFF
}

#[inline(always)]
pub(super) fn equal_and_at_most(cells: &[AtomicU64; LANES], number: u64) -> (u32, u32) {
    (equal(cells, number), at_most(cells, number))
}

#[inline(always)]
pub(super) fn halves_equal_and_at_most(halves: &[AtomicU32; LANES], number: u32) -> (u32, u32) {
    (equal_halves(halves, number), halves_at_most(halves, number))
}
