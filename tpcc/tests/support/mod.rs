//! What the server tests share.

use tpcc::engine::Engine;
use tpcc::failure::Result;
use tpcc::load::{LoadOptions, load};
use tpcc::scale::Scale;
use tpcc::target::Target;

/// A database that loads in a moment and is checked in one.
pub const SMALL: Scale = Scale {
    warehouses: 1,
    items: 1000,
    customers: 60,
};

/// Settings of a test's server.
pub fn settings(engine: Engine) -> Vec<(&'static str, &'static str)> {
    let mut settings = vec![
        ("shared_buffers", "128MB"),
        ("max_connections", "60"),
        ("jit", "off"),
    ];
    if engine.is_mot() {
        settings.extend([
            ("shared_preload_libraries", "mot"),
            ("mot.max_memory", "1GB"),
        ]);
    }
    settings
}

/// Loads [`SMALL`].
pub fn small_load(target: &Target, seed: u64, foreign_keys: bool) -> Result<()> {
    let options = LoadOptions {
        scale: SMALL,
        seed,
        workers: 1,
        keys_first: false,
        foreign_keys,
        verbose: false,
    };
    load(target, &options).map(|_| ())
}
