//! The log ends behind every single one of its records.

use super::*;

/// Stories told without `MOT_TEST_SEED`.
const STORIES: u64 = 40;
/// Checkpoints of a story.
const CHECKPOINTS: u64 = 3;
/// Steps between two of them, at the most.
const STEPS: u64 = 600;

/// Recovers at each record that may be the last one, of what was logged since the checkpoint.
/// Prepared transactions end behind that. Returns how many there were.
fn crash_everywhere(world: &World, disk: &SimulatedDisk, durable: u64, met: &mut Held) -> u64 {
    let wal = world.wal.borrow().clone();
    let ends = wal.entries.iter().map(|(lsn, _)| *lsn);
    let ends: Vec<u64> = ends.filter(|lsn| *lsn >= durable).collect();
    for at in &ends {
        let mut random = Random(*at);
        let up = World::try_recover(&mut random, wal.clone(), disk, *at, &mut |_| Ok(()));
        let mut recovered = up.expect("recovers");
        recovered.check();
        met.add(&recovered);
        recovered.end_all();
        recovered.check();
    }
    ends.len() as u64
}

fn tell(seed: u64, met: &mut Held) -> u64 {
    let mut world = World::new(seed);
    let disk = SimulatedDisk::new(seed);
    let mut crashes = 0;
    let mut durable = 0;
    for _ in 0..CHECKPOINTS {
        for _ in 0..world.random.below(STEPS) {
            world.step();
        }
        crashes += crash_everywhere(&world, &disk, durable, met);
        let steps = world.random.below(12);
        durable = world.checkpoint(&disk, steps);
    }
    crashes + crash_everywhere(&world, &disk, durable, met)
}

#[test]
fn recovers_wherever_the_log_ends() {
    let seeds = match std::env::var("MOT_TEST_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a number");
            seed..seed + 1
        }
        Err(_) => 0..STORIES,
    };
    let stories = seeds.end - seeds.start;
    let (mut crashes, mut met) = (0, Held::default());
    for seed in seeds {
        let outcome =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tell(seed, &mut met)));
        match outcome {
            Ok(more) => crashes += more,
            Err(payload) => {
                eprintln!("failed with MOT_TEST_SEED={seed}");
                std::panic::resume_unwind(payload);
            }
        }
    }
    println!("{crashes} crashes, {met:?}");
    if stories >= STORIES {
        assert!(crashes > 50 * stories, "{crashes}");
        assert!(met.least() > crashes / 100, "{met:?}");
    }
}
