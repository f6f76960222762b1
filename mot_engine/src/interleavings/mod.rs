//! The engine's protocols under the scheduler of `mot_model`: the real code, in many interleavings,
//! with the memory orderings it asks for and no stronger ones. `cargo test -p mot_engine --features
//! model --lib interleavings -- --nocapture` prints how many.
//!
//! Each step that a model claims to need is left out in a test of its own (`mod seen`), which fails
//! unless the model notices.

mod beside;
mod chains;
mod commit;
mod epochs;
mod given_up;
mod keys_cleared;
mod ordinals;
mod orphans;
mod own_versions;
mod pending_prunes;
mod rivals;
mod unresolved;

use crate::memory::{ArenaOptions, HugePages, Memory, Region};
use crate::{
    Clock, CommandId, Engine, Log, Lsn, RelationKey, Session, Snapshot, TableRef, Transaction, Xid,
};
use mot_model::{AtomicU64, Ordering};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

const ARENA_BYTES: usize = 16 << 20;
const FIRST_XID: u64 = 10;

/// What PostgreSQL knows: what runs, what committed, which snapshots are registered, how long the
/// log is.
#[derive(Default)]
struct Server {
    next: u64,
    running: BTreeSet<u64>,
    committed: BTreeSet<u64>,
    /// Xmins.
    registered: Vec<u64>,
    log_end: u64,
    /// It is not known any more what became of transactions below.
    forgotten: u64,
    /// What a row holds for a reader that takes a snapshot now.
    value: u64,
}

/// A transaction manager whose every call is a pass through one lock, as PostgreSQL's are.
struct World {
    server: Mutex<Server>,
    /// What the lock of the real server gives besides exclusion: a process that comes later knows
    /// what came before.
    passes: AtomicU64,
}

impl World {
    fn new() -> Arc<World> {
        let server = Server {
            next: FIRST_XID,
            ..Server::default()
        };
        Arc::new(World {
            server: Mutex::new(server),
            passes: AtomicU64::new(0),
        })
    }

    fn with<R>(&self, work: impl FnOnce(&mut Server) -> R) -> R {
        self.passes.fetch_add(1, Ordering::AcqRel);
        work(&mut self.server.lock().unwrap())
    }

    fn begin(self: &Arc<World>) -> Me {
        let xid = self.with(|server| {
            let xid = server.next;
            server.next += 1;
            server.running.insert(xid);
            xid
        });
        Me {
            world: self.clone(),
            xid,
        }
    }

    fn horizon(&self) -> Xid {
        self.with(|server| {
            let running = server.running.first().copied();
            let registered = server.registered.iter().min().copied();
            Xid(running
                .into_iter()
                .chain(registered)
                .min()
                .unwrap_or(server.next))
        })
    }
}

/// A transaction, or with xid 0 a process that only reads.
#[derive(Clone)]
struct Me {
    world: Arc<World>,
    xid: u64,
}

impl Me {
    fn nobody(world: &Arc<World>) -> Me {
        Me {
            world: world.clone(),
            xid: 0,
        }
    }

    fn commit(&self, value: Option<u64>) {
        self.world.with(|server| {
            server.running.remove(&self.xid);
            server.committed.insert(self.xid);
            server.value = value.unwrap_or(server.value);
        });
    }

    fn abort(&self) {
        self.world.with(|server| server.running.remove(&self.xid));
    }

    fn snapshot(&self) -> Snap {
        self.world.with(|server| {
            let xmin = server.running.first().copied().unwrap_or(server.next);
            server.registered.push(xmin);
            Snap {
                world: self.world.clone(),
                xmin,
                xmax: server.next,
                running: server.running.clone(),
                value: server.value,
            }
        })
    }

    /// Waits until a transaction has ended.
    fn wait_for(&self, xid: Xid) {
        while self.is_in_progress(xid) {
            mot_model::yield_now();
        }
    }
}

impl Clock for Me {
    fn is_current(&self, xid: Xid) -> bool {
        xid.0 == self.xid
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        self.world.with(|server| server.running.contains(&xid.0))
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.world.with(|server| server.committed.contains(&xid.0))
    }
}

/// A registered snapshot, and what the row holds for it.
struct Snap {
    world: Arc<World>,
    xmin: u64,
    xmax: u64,
    running: BTreeSet<u64>,
    value: u64,
}

impl Drop for Snap {
    fn drop(&mut self) {
        self.world.with(|server| {
            let at = server.registered.iter().position(|xmin| *xmin == self.xmin);
            server.registered.remove(at.expect("it was registered"));
        });
    }
}

impl Snapshot for Snap {
    fn xmin(&self) -> Xid {
        Xid(self.xmin)
    }
    fn own(&self, _: Xid, _: CommandId) -> Option<bool> {
        None
    }
    fn running(&self, xid: Xid) -> bool {
        xid.0 >= self.xmax || self.running.contains(&xid.0)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.world.with(|server| server.committed.contains(&xid.0))
    }
}

impl Log for Arc<World> {
    fn append(&mut self, record: &[u8]) -> Lsn {
        self.with(|server| {
            server.log_end += 24 + record.len() as u64;
            Lsn(server.log_end)
        })
    }
}

/// An arena, an engine and a world for one run.
struct Place {
    engine: Engine,
    world: Arc<World>,
    table: TableRef,
    _region: Region,
}

// SAFETY: the coroutines of a run share one thread; storages live as long as the region.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// A table without indexes.
    fn new() -> Arc<Place> {
        let region = Region::create(ARENA_BYTES, HugePages::Off).unwrap();
        // SAFETY: the region is fresh and kept for as long as the engine.
        let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.unwrap();
        let engine = Engine::format(memory).unwrap();
        engine.set_state(crate::State::Ready);
        let world = World::new();
        let session = engine.join().unwrap();
        let me = world.begin();
        let mut work = Transaction::new();
        let key = RelationKey::of_file(1, 0, 2);
        let table = work.create_table(&session, key, Xid(me.xid)).unwrap();
        me.commit(None);
        work.commit(&session);
        drop(session);
        Arc::new(Place {
            engine,
            world,
            table,
            _region: region,
        })
    }

    fn join(&self) -> Session {
        self.engine.join().unwrap()
    }
}

/// A thread of a model.
fn thread(
    place: &Arc<Place>,
    work: impl FnOnce(&Place) + Send + 'static,
) -> Box<dyn FnOnce() + Send> {
    let place = place.clone();
    Box::new(move || work(&place))
}

/// A tuple that holds a number.
fn body(value: u64) -> Vec<u8> {
    let mut body = vec![0; 6];
    body[4] = 24;
    body.extend_from_slice(&value.to_le_bytes());
    body
}

fn value_of(body: &[u8]) -> u64 {
    u64::from_le_bytes(body[6..14].try_into().unwrap())
}
