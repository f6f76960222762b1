//! The reclaim worker: keeps the shared horizon fresh and sweeps tables for what no writer meets again.
use pgrx::prelude::*;

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn mot_reclaimer_main(_arg: pg_sys::Datum) {
    super::begin();
    while !super::shutdown_asked() {
        crate::pg::interrupts::sleep_ms(1000);
    }
}
