//! The engine without SQL: what its own benches found. They run without a server (`cargo bench`), so this part only looks for what the
//! newest of their runs on this machine left behind.

use super::Bench;
use tpcc::failure::Result;

pub(crate) const PART: &str = "engine";

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    bench
        .notes
        .push("the benches of index and engine run by themselves: cargo bench".into());
    Ok(())
}
