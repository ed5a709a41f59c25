//! Every fuzz target runs on its seeds, and on no bytes at all, without a fuzzer.

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;

#[test]
fn every_target_takes_its_seeds() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    for (name, run) in targets::TARGETS {
        run(b"");
        let folder = std::fs::read_dir(seeds.join(name)).unwrap_or_else(|error| panic!("seeds of {name}: {error}"));
        let mut count = 0;
        for seed in folder {
            let path = seed.expect("the folder can be read").path();
            // A failing input is told by the last line before the panic's message.
            println!("{}", path.display());
            run(&std::fs::read(&path).expect("a seed can be read"));
            count += 1;
        }
        assert!(count >= 3, "{name} has only {count} seeds");
    }
}

#[test]
fn commands_answer_as_the_model_does_on_noise() {
    for seed in 0..300 {
        println!("seed {seed}");
        targets::commands::run(&caswell_model::noise(seed, 200 * caswell_model::STEP_BYTES));
    }
}

#[test]
fn every_target_is_built_by_cargo_fuzz() {
    let manifest = include_str!("../fuzz/Cargo.toml");
    for (name, _) in targets::TARGETS {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "fuzz/Cargo.toml has no binary {name}");
    }
}
