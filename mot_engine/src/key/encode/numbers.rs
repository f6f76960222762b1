//! Numbers, and what is made of them: times, addresses, row ids and oids.

use super::kinds::corrupt;
use crate::errors::EngineError;
use crate::key::buffer::KeyBuffer;

/// Before the oids of an oidvector: three fields of an array, its length, and its lower bound.
const OIDVECTOR_HEADER_BYTES: usize = 20;

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
const MICROSECONDS_PER_DAY: i128 = 86_400_000_000;
const DAYS_PER_MONTH: i64 = 30;

/// Bits that order, as unsigned numbers, like PostgreSQL orders the floats.
pub(super) fn order_f32(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    if value.is_nan() {
        u32::MAX
    } else if value == 0.0 {
        1 << 31
    } else if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    }
}

pub(super) fn order_f64(bits: u64) -> u64 {
    let value = f64::from_bits(bits);
    if value.is_nan() {
        u64::MAX
    } else if value == 0.0 {
        1 << 63
    } else if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// By instant, then by zone: timetz_cmp_internal.
pub(super) fn encode_timetz(bytes: [u8; 12], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let [time @ .., z0, z1, z2, z3] = bytes;
    let zone = i32::from_le_bytes([z0, z1, z2, z3]);
    let instant = i64::from_le_bytes(time)
        .wrapping_add(i64::from(zone).wrapping_mul(MICROSECONDS_PER_SECOND));
    key.push_array((instant as u64 ^ 1 << 63).to_be_bytes())?;
    key.push_array((zone as u32 ^ 1 << 31).to_be_bytes())
}

/// The span in microseconds as interval_cmp_value computes it. It is below 2^75 in magnitude, so 80
/// bits hold it.
pub(super) fn encode_interval(bytes: [u8; 16], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let [
        t0,
        t1,
        t2,
        t3,
        t4,
        t5,
        t6,
        t7,
        d0,
        d1,
        d2,
        d3,
        m0,
        m1,
        m2,
        m3,
    ] = bytes;
    let time = i64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
    let day = i32::from_le_bytes([d0, d1, d2, d3]);
    let month = i32::from_le_bytes([m0, m1, m2, m3]);
    let days = i64::from(month) * DAYS_PER_MONTH + i64::from(day);
    let span = i128::from(time) + i128::from(days) * MICROSECONDS_PER_DAY;
    let biased = (span + (1 << 79)) as u128;
    let mut ordered = [0; 10];
    ordered.copy_from_slice(&biased.to_be_bytes()[6..]);
    key.push_array(ordered)
}

/// network_cmp: family, the network's bits, their number, the whole address.
pub(super) fn encode_inet(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let malformed = || corrupt("inet is malformed");
    let [family, bits, address @ ..] = bytes else {
        return Err(malformed());
    };
    // PGSQL_AF_INET = 2 (AF_INET), PGSQL_AF_INET6 = 3.
    let width = match family {
        2 => 4,
        3 => 16,
        _ => return Err(malformed()),
    };
    if address.len() != width || usize::from(*bits) > width * 8 {
        return Err(malformed());
    }
    key.push_array([*family])?;
    for (index, byte) in address.iter().enumerate() {
        let covered = usize::from(*bits).saturating_sub(index * 8).min(8);
        // The upper `covered` bits.
        let mask = !(0xFF_u16 >> covered) as u8;
        key.push_array([byte & mask])?;
    }
    key.push_array([*bits])?;
    key.push(address)
}

/// ItemPointerCompare: the block, whose upper half is first, then the offset.
pub(super) fn encode_tid(bytes: [u8; 6], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let [a, b, c, d, e, f] = bytes;
    key.push_array([b, a, d, c, f, e])
}

/// btoidvectorcmp: the number of oids, then the oids.
pub(super) fn encode_oidvector(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let malformed = || corrupt("oidvector is malformed");
    let (header, oids) = bytes
        .split_first_chunk::<OIDVECTOR_HEADER_BYTES>()
        .ok_or_else(malformed)?;
    let [.., d0, d1, d2, d3, _, _, _, _] = *header;
    let count = u32::from_le_bytes([d0, d1, d2, d3]);
    if oids.len() % 4 != 0 || u32::try_from(oids.len() / 4) != Ok(count) {
        return Err(malformed());
    }
    key.push_array(count.to_be_bytes())?;
    for oid in oids.chunks_exact(4) {
        key.push_array([oid[3], oid[2], oid[1], oid[0]])?;
        if key.is_too_long() {
            break;
        }
    }
    Ok(())
}
