//! Keys that share a slice in a leaf, and move to a layer with one more, under readers of all
//! kinds.

use super::*;

/// A key behind the slice they share.
fn key(tail: &str) -> Vec<u8> {
    format!("a slice,{tail}").into_bytes()
}

fn keys<const N: usize>(tails: [&str; N]) -> Vec<Vec<u8>> {
    tails.map(key).to_vec()
}

/// A tree with these keys.
fn with(keys: &[Vec<u8>]) -> Arc<Shared> {
    let shared = Arc::new(Shared::default());
    keys.iter().for_each(|key| shared.insert(key));
    shared
}

/// As many as may stay are there: with one more all move to a layer, which stays when that goes.
fn moved(direction: Direction) {
    let kept = [keys(["one", "three", "two", "zero"]), vec![b"b".to_vec()]].concat();
    let shared = with(&kept);
    let (for_get, for_scan) = (kept.clone(), kept.clone());
    threads(vec![
        work(&shared, |shared| {
            shared.insert(&key("seven"));
            shared.remove(&key("seven"));
        }),
        work(&shared, move |shared| {
            [0, 3]
                .iter()
                .for_each(|at| shared.get_present(&for_get[*at]));
            shared.get_perhaps(&key("seven"));
        }),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    shared.finish(&kept);
}

/// The same with one reader of one key.
fn moved_beside_a_get() {
    let kept = keys(["one", "three", "two", "zero"]);
    let shared = with(&kept);
    let for_get = kept.clone();
    threads(vec![
        work(&shared, |shared| shared.insert(&key("seven"))),
        work(&shared, move |shared| shared.get_present(&for_get[0])),
    ]);
    shared.finish(&[kept, keys(["seven"])].concat());
}

/// A leaf is full, and instead of being split it gives a layer what one slice has, before another
/// key comes to it.
fn moved_for_room(direction: Direction) {
    let mut kept = keys(["one", "three", "two", "zero"]);
    kept.extend((0..11).map(|at| number(at * 10)));
    let shared = with(&kept);
    let (for_get, for_scan) = (kept.clone(), kept.clone());
    threads(vec![
        work(&shared, |shared| shared.insert(&number(15))),
        work(&shared, move |shared| {
            [1, 7]
                .iter()
                .for_each(|at| shared.get_present(&for_get[*at]));
        }),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    shared.finish(&[kept, vec![number(15)]].concat());
}

/// The same, two writers beside one reader.
fn moved_for_room_of_two() {
    let mut kept = keys(["one", "three", "two", "zero"]);
    kept.extend((0..11).map(|at| number(at * 10)));
    let shared = with(&kept);
    let for_get = kept.clone();
    threads(vec![
        work(&shared, |shared| shared.insert(&number(15))),
        work(&shared, |shared| {
            shared.insert_at_positions(&[key("five"), number(25)])
        }),
        work(&shared, move |shared| shared.get_present(&for_get[1])),
    ]);
    shared.finish(&[kept, keys(["five"]), vec![number(15), number(25)]].concat());
}

/// They share a further slice, so they move to a chain of layers, from which some go while others
/// come.
fn moved_far_down() {
    let kept = keys(["far down 1", "far down 2"]);
    let going = keys(["far down 3", "far down 4"]);
    let coming = keys(["far down 5", "far down 0"]);
    let shared = with(&[kept.clone(), going.clone()].concat());
    let (for_get, new) = (kept.clone(), coming.clone());
    threads(vec![
        work(&shared, move |shared| {
            new.iter().for_each(|key| shared.insert(key))
        }),
        work(&shared, move |shared| {
            going.iter().for_each(|key| shared.remove(key))
        }),
        work(&shared, move |shared| {
            shared.get_present_together(&[&for_get[0], &for_get[1]]);
        }),
    ]);
    shared.finish(&[kept, coming].concat());
}

/// A scan begins between suffixes that move to a layer.
fn moved_beside_an_edge(direction: Direction) {
    let kept = keys(["1", "3", "5", "7"]);
    let shared = with(&kept);
    let wanted: Vec<Vec<u8>> = match direction {
        Direction::Forward => kept[2..].to_vec(),
        Direction::Backward => kept[..2].to_vec(),
    };
    let edge = key("4");
    threads(vec![
        work(&shared, |shared| shared.insert(&key("9"))),
        work(&shared, move |shared| {
            let mut batch = Batch::with_capacity(20);
            shared.with(|tree| tree.scan_batch(Bound::Included(&edge), direction, &mut batch));
            let mut seen: Vec<Vec<u8>> = batch.iter().map(|(key, _)| key.to_vec()).collect();
            seen.retain(|seen| *seen != key("9"));
            seen.sort();
            assert_eq!(seen, wanted);
        }),
    ]);
    shared.finish(&[kept, keys(["9"])].concat());
}

/// Several writers bring a slice beyond what may stay, by insert positions, too.
fn writers() {
    let kept = keys(["1", "2", "3"]);
    let shared = with(&kept);
    threads(vec![
        work(&shared, |shared| {
            keys(["4", "6"]).iter().for_each(|key| shared.insert(key));
        }),
        work(&shared, |shared| {
            shared.insert_at_positions(&keys(["5", "0"]))
        }),
        work(&shared, |shared| {
            shared.remove(&key("2"));
            shared.insert(&key("2"));
        }),
    ]);
    shared.finish(&[kept, keys(["4", "6", "5", "0"])].concat());
}

/// A key goes and another of its slice takes its slot, under readers of both.
fn reused() {
    let shared = with(&keys(["kept", "going"]));
    threads(vec![
        work(&shared, |shared| {
            shared.remove(&key("going"));
            shared.insert(&key("coming"));
        }),
        work(&shared, |shared| {
            shared.get_perhaps(&key("coming"));
            shared.get_present(&key("kept"));
        }),
        work(&shared, |shared| shared.get_perhaps(&key("going"))),
    ]);
    shared.finish(&keys(["kept", "coming"]));
}

/// Keys come to a leaf, some with a new bag, under a scan.
fn put(direction: Direction) {
    let kept = keys(["kept"]);
    let shared = with(&kept);
    let coming = [
        keys(["a", "a longer suffix than all", "z"]),
        vec![b"z in another slice".to_vec()],
    ]
    .concat();
    let (for_scan, new) = (kept.clone(), coming.clone());
    threads(vec![
        work(&shared, move |shared| {
            new.iter().for_each(|key| shared.insert(key))
        }),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    shared.finish(&[kept, coming].concat());
}

/// A root becomes an inner node of several separators while one reads the suffixes it had as a
/// leaf.
fn split_twice() {
    let name = |at: usize| format!("{at:08} and more").into_bytes();
    let mut all: Vec<Vec<u8>> = (0..15).map(|at| name(at * 100)).collect();
    // Halved, and then, when the other half has taken what it may, halved again.
    let coming: Vec<Vec<u8>> = [
        50, 150, 250, 350, 450, 550, 650, 660, 160, 260, 170, 360, 270, 460, 370, 180,
    ]
    .map(name)
    .to_vec();
    let shared = with(&all);
    let (for_get, new) = (all[14].clone(), coming.clone());
    threads(vec![
        work(&shared, move |shared| {
            new.iter().for_each(|key| shared.insert(key))
        }),
        work(&shared, move |shared| shared.get_present(&for_get)),
    ]);
    all.extend(coming);
    shared.finish(&all);
}

#[test]
fn suffixes_move_to_a_layer_beside_readers() {
    explore(
        "index, suffixes move for the room of two",
        1_500,
        moved_for_room_of_two,
    );
    for direction in [Direction::Forward, Direction::Backward] {
        explore("index, suffixes move to make room", 1_500, move || {
            moved_for_room(direction)
        });
    }
    for direction in [Direction::Forward, Direction::Backward] {
        explore("index, suffixes move to a layer", 1_500, move || {
            moved(direction)
        });
        explore("index, suffixes move beside an edge", 1_500, move || {
            moved_beside_an_edge(direction)
        });
    }
    explore(
        "index, suffixes move beside a get",
        1_500,
        moved_beside_a_get,
    );
    explore("index, suffixes move to a chain", 1_500, moved_far_down);
}

#[test]
fn suffixes_of_a_slice_beside_writers() {
    explore("index, writers of one slice", 2_000, writers);
}

#[test]
fn suffixes_come_and_go_beside_readers() {
    explore("index, slots of suffixes used again", 3_000, reused);
    for direction in [Direction::Forward, Direction::Backward] {
        explore("index, suffixes come beside a scan", 1_500, move || {
            put(direction)
        });
    }
    explore("index, two splits beside a suffix", 500, split_twice);
}

/// Each step is needed, and the models see that.
mod seen {
    use super::*;

    const RUNS: usize = 40_000;

    #[test]
    fn dirty_while_suffixes_move() {
        finds(
            "index: dirty while suffixes move to a layer",
            RUNS,
            moved_beside_a_get,
        );
    }

    #[test]
    fn counting_that_suffixes_moved() {
        finds("index: counting a removal", RUNS, moved_beside_a_get);
    }

    #[test]
    fn dirty_while_suffixes_move_for_room() {
        finds("index: dirty while suffixes move to a layer", RUNS, || {
            moved_for_room(Direction::Forward)
        });
    }

    #[test]
    fn going_down_again_where_suffixes_moved() {
        for direction in [Direction::Forward, Direction::Backward] {
            finds(
                "index: going down again where suffixes moved to a layer",
                RUNS,
                move || moved_beside_an_edge(direction),
            );
        }
    }

    #[test]
    fn validating_behind_a_suffix() {
        finds("index: validating behind a suffix", RUNS, reused);
    }

    #[test]
    fn validating_before_a_bag_is_followed() {
        finds(
            "index: validating before a bag is followed",
            RUNS,
            split_twice,
        );
    }

    #[test]
    fn a_suffix_before_its_entry() {
        finds("index: a suffix before its entry", RUNS, || {
            put(Direction::Forward)
        });
    }

    #[test]
    fn the_release_of_an_entry_with_a_suffix() {
        finds("index: the release of an entry", RUNS, || {
            put(Direction::Forward)
        });
    }
}
