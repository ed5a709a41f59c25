//! The driver: runs each model in a process of its own, then each planted fault, and prints bounds and executions.

#[cfg(not(caswell_loom))]
fn main() {
    eprintln!("this build has no models in it; start them with loom-tests/run");
    std::process::exit(2);
}

#[cfg(caswell_loom)]
fn main() -> std::process::ExitCode {
    driver::main()
}

#[cfg(caswell_loom)]
mod driver {
    use loom_tests::{Model, executions, models};
    use std::io::Write;
    use std::process::{Command, ExitCode, Stdio};
    use std::sync::Mutex;
    use std::time::Instant;

    const USAGE: &str = "usage: loom-tests/run [--jobs N] [--no-faults | --only-faults] [PART-OF-A-NAME ...]
       loom-tests/run --list
       loom-tests/run --one MODEL     in this process; CASWELL_PLANTED_FAULT=name plants a fault";
    /// The exit code of a wrong call, so that it is never taken for a model that failed.
    const WRONG_CALL: u8 = 2;

    pub fn main() -> ExitCode {
        let mut jobs = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let (mut sound, mut faults) = (true, true);
        let mut filters = Vec::new();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--jobs" => match arguments.next().and_then(|count| count.parse().ok()) {
                    Some(count) if count > 0 => jobs = count,
                    _ => return wrong_call(USAGE),
                },
                "--no-faults" => faults = false,
                "--only-faults" => sound = false,
                "--list" => return list(),
                "--one" => return arguments.next().map_or_else(|| wrong_call(USAGE), |name| one(&name)),
                other if other.starts_with('-') => return wrong_call(USAGE),
                _ => filters.push(argument),
            }
        }
        let chosen: Vec<_> = models::all()
            .filter(|model| filters.is_empty() || filters.iter().any(|part| model.name.contains(part.as_str())))
            .collect();
        if chosen.is_empty() {
            return wrong_call("no model has such a name");
        }
        let undocumented = undocumented();
        for gap in &undocumented {
            println!("FAILED  README.md does not name {gap}");
        }
        let mut runs: Vec<Run> = Vec::new();
        for model in chosen {
            if sound {
                runs.push(Run { model, fault: None });
            }
            if faults {
                runs.extend(model.faults.iter().map(|fault| Run { model, fault: Some(fault) }));
            }
        }
        let failed = run_all(&runs, jobs) + undocumented.len();
        println!("{} passed, {failed} failed", runs.len() + undocumented.len() - failed);
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn wrong_call(message: &str) -> ExitCode {
        eprintln!("{message}");
        ExitCode::from(WRONG_CALL)
    }

    fn list() -> ExitCode {
        for model in models::all() {
            println!("{}  bound {}  {}", model.name, model.preemption_bound, model.promise);
            for fault in model.faults {
                println!("    planted fault {fault}");
            }
        }
        ExitCode::SUCCESS
    }

    /// Models and faults that the README's table lacks.
    fn undocumented() -> Vec<&'static str> {
        const README: &str = include_str!("../README.md");
        models::all()
            .flat_map(|model| std::iter::once(model.name).chain(model.faults.iter().copied()))
            .filter(|name| !README.contains(&format!("`{name}`")))
            .collect()
    }

    /// Runs one model in this process.
    fn one(name: &str) -> ExitCode {
        let Some(model) = models::all().find(|model| model.name == name) else {
            return wrong_call("no model has this name");
        };
        let default_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            eprintln!("in execution {}:", executions());
            default_hook(panic);
        }));
        let outcome = model.check();
        println!("{} executions, {:.1} s", outcome.executions, outcome.seconds);
        ExitCode::SUCCESS
    }

    /// One process to start: a model as it ships, or with one planted fault.
    struct Run {
        model: &'static Model,
        fault: Option<&'static &'static str>,
    }

    /// Runs them, `jobs` at a time, and returns how many did not do what they must.
    fn run_all(runs: &[Run], jobs: usize) -> usize {
        let waiting = Mutex::new(runs.iter());
        let failed = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..jobs.min(runs.len()) {
                scope.spawn(|| {
                    loop {
                        let next = waiting.lock().expect("no holder panics").next();
                        let Some(run) = next else { break };
                        let (passed, report) = run.start();
                        // One write per run, so that reports of runs side by side do not mix.
                        let mut out = std::io::stdout().lock();
                        writeln!(out, "{report}").and_then(|()| out.flush()).expect("standard output is open");
                        if !passed {
                            *failed.lock().expect("no holder panics") += 1;
                        }
                    }
                });
            }
        });
        failed.into_inner().expect("no holder panics")
    }

    impl Run {
        /// Whether the process did what it must, and the line (on failure: lines) that says so.
        fn start(&self) -> (bool, String) {
            let Model { name, preemption_bound, .. } = self.model;
            let started = Instant::now();
            let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
            command.args(["--one", name]).stdin(Stdio::null()).env_remove("CASWELL_PLANTED_FAULT");
            if let Some(fault) = self.fault {
                command.env("CASWELL_PLANTED_FAULT", fault);
            }
            let output = command.output().expect("the driver can start itself");
            let stdout = String::from_utf8_lossy(&output.stdout);
            let stderr = String::from_utf8_lossy(&output.stderr);
            let wrong_call = output.status.code() == Some(i32::from(WRONG_CALL));
            let seconds = started.elapsed().as_secs_f64();
            match self.fault {
                None if output.status.success() => {
                    (true, format!("ok      {name}: preemption bound {preemption_bound}, {}", stdout.trim()))
                }
                None => (
                    false,
                    format!(
                        "FAILED  {name}: preemption bound {preemption_bound}, {} after {seconds:.1} s\n{stdout}{stderr}",
                        output.status
                    ),
                ),
                Some(fault) if output.status.success() || wrong_call => (
                    false,
                    format!("FAILED  {name}: the planted fault {fault} was not caught ({})\n{stderr}", stdout.trim()),
                ),
                Some(fault) => {
                    let place = stderr.lines().find(|line| line.starts_with("in execution ")).unwrap_or("by a crash:");
                    (true, format!("caught  {name}: planted fault {fault}, {} {seconds:.1} s", place.replace(':', ",")))
                }
            }
        }
    }
}
