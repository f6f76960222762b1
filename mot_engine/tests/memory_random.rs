//! Random use against a model: blocks never overlap, keep their contents, are counted, and all
//! memory comes back.

use mot_engine::memory::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ptr::NonNull;

const ARENA_BYTES: usize = 48 << 20;

#[derive(Clone, Debug)]
enum Step {
    Allocate {
        who: usize,
        bytes: usize,
        count: usize,
        purpose: usize,
        urgent: bool,
    },
    Free {
        who: usize,
        which: usize,
        count: usize,
    },
    Retire {
        who: usize,
        which: usize,
        count: usize,
    },
    Pin {
        who: usize,
    },
    Unpin {
        who: usize,
    },
    Collect {
        who: usize,
    },
    Flush {
        who: usize,
    },
    Rejoin {
        who: usize,
    },
}

const PARTICIPANTS: usize = 3;

fn step() -> impl Strategy<Value = Step> {
    let who = 0..PARTICIPANTS;
    let bytes = prop_oneof![
        6 => 1_usize..600,
        3 => 600_usize..40_000,
        1 => 40_000_usize..6_000_000,
    ];
    prop_oneof![
        8 => (who.clone(), bytes, 1_usize..200, 0_usize..5, prop::bool::weighted(0.2)).prop_map(
            |(who, bytes, count, purpose, urgent)| Step::Allocate {
                who,
                bytes,
                // Of large blocks a few only.
                count: count.min(1 + 2_000_000 / bytes),
                purpose,
                urgent
            }
        ),
        5 => (who.clone(), any::<usize>(), 1_usize..300)
            .prop_map(|(who, which, count)| Step::Free { who, which, count }),
        4 => (who.clone(), any::<usize>(), 1_usize..300)
            .prop_map(|(who, which, count)| Step::Retire { who, which, count }),
        1 => who.clone().prop_map(|who| Step::Pin { who }),
        2 => who.clone().prop_map(|who| Step::Unpin { who }),
        1 => who.clone().prop_map(|who| Step::Collect { who }),
        1 => who.clone().prop_map(|who| Step::Flush { who }),
        1 => who.prop_map(|who| Step::Rejoin { who }),
    ]
}

#[derive(Clone, Copy)]
struct Block {
    bytes: usize,
    purpose: Purpose,
    seed: u8,
}

/// Live blocks by address.
#[derive(Default)]
struct Model {
    blocks: BTreeMap<usize, Block>,
    seed: u8,
}

impl Model {
    fn add(&mut self, at: NonNull<u8>, bytes: usize, purpose: Purpose) {
        let address = at.addr().get();
        if let Some((&before, block)) = self.blocks.range(..=address).next_back() {
            assert!(before + block.bytes <= address, "overlap");
        }
        if let Some((&after, _)) = self.blocks.range(address..).next() {
            assert!(address + bytes <= after, "overlap");
        }
        let aligned = [64, 32, 16]
            .into_iter()
            .find(|&it| bytes.is_multiple_of(it));
        assert_eq!(address % aligned.unwrap_or(8), 0);
        self.seed = self.seed.wrapping_add(1) % 200;
        // SAFETY: just allocated.
        unsafe { at.write_bytes(self.seed, bytes) };
        self.blocks.insert(
            address,
            Block {
                bytes,
                purpose,
                seed: self.seed,
            },
        );
    }

    fn remove(&mut self, which: usize) -> Option<(NonNull<u8>, Block)> {
        let number = which.checked_rem(self.blocks.len())?;
        let (&address, &block) = self.blocks.iter().nth(number)?;
        self.blocks.remove(&address);
        let at = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(address)).unwrap();
        // SAFETY: live until now, and the model's alone.
        let contents = unsafe { std::slice::from_raw_parts(at.as_ptr(), block.bytes) };
        assert!(
            contents.iter().all(|&byte| byte == block.seed),
            "contents changed"
        );
        Some((at, block))
    }
}

fn run(steps: &[Step], nodes: &[u32]) {
    let region = Region::create(ARENA_BYTES, HugePages::Off).unwrap();
    let options = ArenaOptions {
        topology: Topology::made_up(nodes),
    };
    // SAFETY: the region outlives the handle.
    let memory = unsafe { Memory::format(&region, &options) }.unwrap();
    let before = memory.report();
    let mut locals: Vec<LocalMemory> = (0..PARTICIPANTS).map(|_| memory.join().unwrap()).collect();
    let mut model = Model::default();
    for step in steps {
        match *step {
            Step::Allocate {
                who,
                bytes,
                count,
                purpose,
                urgent,
            } => {
                let purpose = Purpose::ALL[purpose];
                let urgency = if urgent {
                    Urgency::Reserve
                } else {
                    Urgency::Ordinary
                };
                for _ in 0..count {
                    match locals[who].allocate(bytes, purpose, urgency) {
                        Ok(at) => model.add(at, bytes, purpose),
                        Err(full) => {
                            assert_eq!(full.limit, ARENA_BYTES as u64);
                            break;
                        }
                    }
                }
            }
            Step::Free { who, which, count } => {
                for _ in 0..count {
                    if let Some((at, block)) = model.remove(which) {
                        // SAFETY: live until now.
                        unsafe { locals[who].free(at, block.bytes, block.purpose) };
                    }
                }
            }
            Step::Retire { who, which, count } => {
                for _ in 0..count {
                    if let Some((at, block)) = model.remove(which) {
                        // SAFETY: live until now.
                        unsafe { locals[who].retire(at, block.bytes, block.purpose) };
                    }
                }
            }
            // A guard borrows its participant: forgetting it is what an error's jump does.
            Step::Pin { who } => std::mem::forget(locals[who].pin()),
            Step::Unpin { who } => locals[who].unpin_all(),
            Step::Collect { who } => {
                locals[who].collect();
            }
            Step::Flush { who } => {
                locals[who].flush();
                assert_eq!(
                    (locals[who].cache_bytes(), locals[who].garbage_blocks()),
                    (0, 0)
                );
            }
            Step::Rejoin { who } => {
                drop(locals.swap_remove(who));
                locals.push(memory.join().unwrap());
            }
        }
        assert_eq!(latches_held(), 0);
        assert_eq!(
            memory.arena_bytes_used() + memory.arena_bytes_free(),
            ARENA_BYTES as u64
        );
    }
    for local in &locals {
        local.unpin_all();
    }
    for local in &locals {
        local.flush();
    }
    // All garbage is orphaned or freed by now: whoever collects next gets the rest.
    while memory.report().epochs.orphan_blocks > 0 {
        locals[0].collect();
    }
    locals[0].flush();
    for purpose in Purpose::ALL {
        let live = model
            .blocks
            .values()
            .filter(|block| block.purpose == purpose);
        let expected: i64 = live.map(|block| block_bytes(block.bytes) as i64).sum();
        assert_eq!(memory.purpose_bytes(purpose), expected);
    }
    let in_classes: u64 = memory
        .report()
        .classes
        .iter()
        .map(|class| class.blocks_used)
        .sum();
    let small = model
        .blocks
        .values()
        .filter(|block| block.bytes <= SMALL_BYTES_MAX)
        .count();
    assert_eq!(in_classes, small as u64);
    while let Some((at, block)) = model.remove(0) {
        // SAFETY: live until now.
        unsafe { locals[0].free(at, block.bytes, block.purpose) };
    }
    drop(locals);
    let after = memory.report();
    assert_eq!(after.arena_bytes_used, before.arena_bytes_used);
    assert_eq!(after.classes, before.classes);
    assert_eq!(after.purpose_bytes, [0; 5]);
    assert_eq!(after.chunks.runs, 0);
    assert_eq!(after.epochs.participants, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn one_node(steps in prop::collection::vec(step(), 1..120)) {
        run(&steps, &[0]);
    }

    #[test]
    fn three_nodes(steps in prop::collection::vec(step(), 1..120)) {
        run(&steps, &[0, 1, 2]);
    }
}
