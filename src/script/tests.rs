//! The engine on a host of a few commands: what outlives a run, what cannot be caught, what becomes of values.

use super::{Abort, Ended, Engine, Failure, Host, LogLevel, Program, Script};
use crate::command::args::Args;
use crate::command::error::CommandError;
use crate::resp::{Protocol, Reply};
use crate::sync::Arc;

/// Answers commands by their first word.
#[derive(Default)]
struct Mock {
    calls: Vec<Vec<Vec<u8>>>,
    breaths: usize,
    /// The breath with which the script is ended.
    last_breath: Option<usize>,
    log: Vec<Vec<u8>>,
}

impl Host for Mock {
    fn call(&mut self, args: &Args<'_>, reply: &mut Reply) -> Result<(), Failure> {
        self.calls.push(args.from(0).iter().map(|word| word.to_vec()).collect());
        match args.at(0) {
            b"echo" => reply.bulk(args.at(1)),
            b"fail" => return Err(Failure::Error(CommandError::WRONG_TYPE)),
            b"lose" => return Err(Failure::Abort(Abort::Lost)),
            b"panic" => panic!("as asked for"),
            b"map" => {
                reply.map(1);
                reply.bulk(b"k");
                reply.double(1.5);
            }
            b"set" => {
                reply.set(1);
                reply.bulk(b"m");
            }
            b"null" => reply.null(),
            _ => reply.ok(),
        }
        Ok(())
    }

    fn breathe(&mut self) -> Result<(), Abort> {
        self.breaths += 1;
        let ends = self.last_breath.is_some_and(|last| self.breaths >= last);
        if ends { Err(Abort::Killed("killed")) } else { Ok(()) }
    }

    fn may_run(&mut self, args: &Args<'_>) -> Option<bool> {
        (args.at(0) == b"echo").then_some(true)
    }

    fn log(&mut self, _: LogLevel, line: &[u8]) {
        self.log.push(line.to_vec());
    }
}

fn run_with(
    engine: &mut Engine,
    host: &mut Mock,
    source: &str,
    keys: &[&[u8]],
    arguments: &[&[u8]],
) -> (Ended, String) {
    let script = Script::new(source.as_bytes()).expect("a proper first line");
    let mut reply = Reply::new(Protocol::Resp2);
    let digest = script.digest;
    let program = Program::Script(Arc::new(script));
    let ended = engine.run(&program, keys, arguments, host, &mut reply).expect("proper Lua");
    let text = String::from_utf8_lossy(&reply.to_vec()).replace("\r\n", "|").replace(digest.as_str(), "SHA");
    (ended, text)
}

fn run(source: &str) -> String {
    run_with(&mut Engine::new().expect("memory"), &mut Mock::default(), source, &[], &[]).1
}

#[test]
fn keys_and_arguments_are_those_of_the_run() {
    let (mut engine, mut host) = (Engine::new().expect("memory"), Mock::default());
    let source = "KEYS[2] = 'mine'; return {KEYS[1], ARGV[1], ARGV[2], #KEYS}";
    assert_eq!(run_with(&mut engine, &mut host, source, &[b"k"], &[b"a", b"b"]).1, "*4|$1|k|$1|a|$1|b|:2|");
    assert_eq!(run_with(&mut engine, &mut host, source, &[], &[]).1, "*0|");
    assert_eq!(run_with(&mut engine, &mut host, "return #KEYS", &[], &[]).1, ":0|");
}

#[test]
fn nothing_that_a_script_does_is_seen_by_the_next() {
    let (mut engine, mut host) = (Engine::new().expect("memory"), Mock::default());
    for attempt in [
        "x = 1",
        "redis.call = 1",
        "string.upper = nil",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "rawset(string, 'upper', 1)",
        "table.insert(redis, 1)",
        "table.remove(math)",
        "table.sort(bit)",
        "setmetatable(_G, {})",
        "setmetatable(string, {})",
        "getmetatable('').__index = 1",
        "getmetatable(_G).__index = 1",
        "KEYS = {}",
    ] {
        let (ended, reply) = run_with(&mut engine, &mut host, attempt, &[], &[]);
        assert_eq!(ended, Ended::Failed, "{attempt}");
        assert!(reply.contains("Attempt to modify a readonly table"), "{attempt}: {reply}");
    }
    for (sets, shows, expected) in [
        ("math.randomseed(7)", "return tostring(math.random())", "$16|0.17082803611217|"),
        ("cjson.encode_max_depth(1)", "return cjson.encode({{{1}}})", "$7|[[[1]]]|"),
        ("redis.setresp(3)", "return redis.call('null') == false", ":1|"),
        ("collectgarbage('stop')", "return redis.call('echo', 'x')", "$1|x|"),
        ("local t = {} for k in pairs(_G) do t[#t + 1] = k end", "return KEYS[1]", "$-1|"),
    ] {
        assert_eq!(run_with(&mut engine, &mut host, sets, &[], &[]).0, Ended::Well, "{sets}");
        assert_eq!(run_with(&mut engine, &mut host, shows, &[], &[]).1, expected, "{sets}");
    }
}

#[test]
fn dangerous_globals_are_missing_and_covers_read_like_tables() {
    for name in ["io", "require", "dofile", "loadfile", "print", "module", "debug", "setfenv", "getfenv", "newproxy"] {
        let reply = run(&format!("return {name}"));
        assert!(reply.contains(&format!("nonexistent global variable '{name}'")), "{reply}");
    }
    assert_eq!(run("local n = 0 for k in pairs(os) do n = n + 1 end return n"), ":1|");
    assert_eq!(run("for k, v in pairs(redis) do if k == 'call' then return v == redis.call end end"), ":1|");
    assert_eq!(run("return rawget(redis, 'call') == redis.call and next(bit) ~= nil"), ":1|");
    assert_eq!(run("return ('x'):rep(3)"), "$3|xxx|");
    assert_eq!(
        run("local f, e = loadstring('\\27Lua') return e"),
        "$52|[string \"\x1bLua\"]:1: unexpected symbol near 'char(27)'|"
    );
}

#[test]
fn errors_say_where_and_keep_their_code() {
    assert_eq!(run("return redis.call('fail')"), format!("-{} script: SHA, on @user_script:1.|", WRONG_TYPE));
    assert_eq!(
        run("\nlocal ok, e = pcall(redis.call, 'fail') return e"),
        format!("${}|{WRONG_TYPE}|", WRONG_TYPE.len())
    );
    assert_eq!(run("return redis.pcall('fail')"), format!("-{WRONG_TYPE}|"));
    assert_eq!(run("\n\nerror('boom')"), "-ERR user_script:3: boom script: SHA, on @user_script:3.|");
    assert_eq!(run("error({err='MY boom'})"), "-MY boom script: SHA, on @user_script:1.|");
    assert_eq!(run("error({})"), "-ERR unknown error script: SHA, on @user_script:1.|");
    let mut engine = Engine::new().expect("memory");
    let script = Script::new(b"x =").expect("no first line");
    let error = engine.compile(&script).expect_err("no Lua");
    assert_eq!(
        &*error.message,
        b"Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'"
    );
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn replies_become_values_in_both_protocols() {
    assert_eq!(run("return redis.call('map')"), "*2|$1|k|$3|1.5|");
    assert_eq!(run("redis.setresp(3) local m = redis.call('map').map return m.k.double * 2"), ":3|");
    assert_eq!(run("redis.setresp(3) return redis.call('set').set.m"), ":1|");
    assert_eq!(run("redis.setresp(3) return redis.call('null') == nil"), ":1|");
    assert_eq!(run("return redis.call('anything').ok"), "$2|OK|");
    assert_eq!(run("return {1.9, -1.9, 1e300, 'a', true, false, {ok='fine'}, {err='E x'}, nil, 1}"), RESULTS);
}

const RESULTS: &str = "*8|:1|:-1|:-9223372036854775808|$1|a|:1|$-1|+fine|-E x|";

#[test]
fn an_end_from_outside_cannot_be_caught() {
    for source in [
        "return redis.call('lose')",
        "pcall(redis.call, 'lose') redis.call('echo', 'after')",
        "redis.pcall('lose') redis.call('echo', 'after')",
        "while true do pcall(redis.call, 'lose') end",
        "xpcall(function() redis.call('lose') end, function(e) return e end) redis.call('echo', 'after')",
        "coroutine.resume(coroutine.create(function() redis.call('lose') end)) redis.call('echo', 'after')",
        "while true do coroutine.resume(coroutine.create(function() while true do pcall(redis.call, 'lose') end end)) end",
        "local t = setmetatable({}, {__index = function() redis.call('lose') end}) pcall(function() return t.x end) redis.call('echo', 'after')",
    ] {
        let mut host = Mock::default();
        let (ended, _) = run_with(&mut Engine::new().expect("memory"), &mut host, source, &[], &[]);
        assert_eq!(ended, Ended::Aborted(Abort::Lost), "{source}");
        assert!(host.calls.iter().all(|call| call[0] == b"lose"), "{source}: {:?}", host.calls);
    }
    for source in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "repeat local ok = xpcall(function() while true do end end, function() while true do end end) until false",
        "local function f() return pcall(f) end while true do f() end",
        "while true do coroutine.wrap(function() while true do pcall(function() while true do end end) end end)() end",
        "while true do redis.call('echo', 'x') end",
    ] {
        let mut host = Mock { last_breath: Some(3), ..Mock::default() };
        let mut engine = Engine::new().expect("memory");
        let (ended, reply) = run_with(&mut engine, &mut host, source, &[], &[]);
        assert_eq!(ended, Ended::Aborted(Abort::Killed("killed")), "{source}: {reply}");
        // The state is as good as new.
        let mut host = Mock::default();
        assert_eq!(run_with(&mut engine, &mut host, "return redis.call('echo', 'x')", &[], &[]).1, "$1|x|");
        assert_eq!(host.breaths, 0);
    }
}

#[test]
fn what_outgrows_its_memory_fails_and_leaves_the_state_usable() {
    let mut engine = Engine::with_memory(4 * 1024 * 1024).expect("memory");
    let mut host = Mock::default();
    for source in [
        "local s = 'x' while true do s = s .. s end",
        "local s = ('x'):rep(2000000000) return #s",
        "local t = {} for i = 1, 100 do t = {t, t} end return cjson.encode(t)",
    ] {
        let (ended, reply) = run_with(&mut engine, &mut host, source, &[], &[]);
        assert_eq!(ended, Ended::Failed, "{source}");
        assert!(reply.contains("memory") || reply.contains("string size overflow"), "{source}: {reply}");
        assert_eq!(run_with(&mut engine, &mut host, "return 1", &[], &[]).1, ":1|");
    }
}

#[test]
fn a_panic_of_a_command_goes_on_when_lua_has_returned() {
    let mut engine = Engine::new().expect("memory");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run_with(&mut engine, &mut Mock::default(), "pcall(redis.call, 'panic') return 1", &[], &[])
    }));
    assert!(caught.is_err());
    assert_eq!(run_with(&mut engine, &mut Mock::default(), "return 1", &[], &[]).1, ":1|");
}

#[test]
fn many_scripts_are_compiled_again_when_they_have_been_forgotten() {
    let mut engine = Engine::new().expect("memory");
    for round in 0..2 {
        for number in 0..crate::limits::COMPILED_SCRIPTS_MAX + 10 {
            let reply = run_with(&mut engine, &mut Mock::default(), &format!("return {number}"), &[], &[]).1;
            assert_eq!(reply, format!(":{number}|"), "round {round}");
        }
    }
}

#[test]
fn lines_for_the_log_are_joined() {
    let mut host = Mock::default();
    run_with(&mut Engine::new().expect("memory"), &mut host, "redis.log(redis.LOG_NOTICE, 'a', 1, 'b')", &[], &[]);
    assert_eq!(host.log, [b"a 1 b".to_vec()]);
}
