//! The scenes.

/// A scene, and the servers with which it is compared.
pub struct Scene {
    /// What it is about.
    pub name: String,
    /// Its lines.
    pub script: String,
    /// `redis`, `valkey` or both.
    pub servers: &'static [&'static str],
}

/// All scenes.
pub fn all() -> Vec<Scene> {
    let owned = |(name, script): &(&str, &str)| ((*name).to_owned(), (*script).to_owned());
    let of_both =
        SCENES.iter().map(owned).chain(waiting_for_every_kind_of_write()).chain(watching_every_kind_of_change());
    let scene = |servers| move |(name, script)| Scene { name, script, servers };
    let of_both = of_both.map(scene(&["redis", "valkey"]));
    let since_7_2 = SINCE_7_2.iter().map(owned).map(scene(&["valkey"]));
    of_both.chain(since_7_2).chain(UNLIKE_VALKEY.iter().map(owned).map(scene(&["redis"]))).collect()
}

/// A client that waits for a list, and what another does meanwhile. If that serves nobody, the wait ends otherwise, and what has become of
/// the key is seen.
fn waiting_for_every_kind_of_write() -> impl Iterator<Item = (String, String)> {
    const WAITS: &[&str] = &[
        "BLPOP other k 0",
        "BRPOP k 0",
        "BLMOVE k l LEFT RIGHT 0",
        "BRPOPLPUSH k k 0",
        "BLMPOP 0 2 other k RIGHT COUNT 2",
    ];
    const WRITES: &[&[&str]] = &[
        &["LPUSH k 1 2 3"],
        &["RPUSH k 1 2 3"],
        &["LPUSHX k 1"],
        &["MULTI", "RPUSH k 1", "LPUSH k 0", "EXEC"],
        &["MULTI", "RPUSH k 1", "DEL k", "EXEC"],
        &["MULTI", "RPUSH k 1", "SET k x", "EXEC"],
        &["MULTI", "RPUSH k 1", "RPOP k", "RPUSH k 2", "EXEC"],
        &["MULTI", "RPUSH k 1", "LRANGE k 0 -1", "PING", "EXEC"],
        &["MULTI", "RPUSH k 1", "FLUSHALL", "EXEC"],
        &["MULTI", "RPUSH k 1", "DBSIZE", "EXEC"],
        &["MULTI", "RPUSH k 1", "DISCARD"],
        &["RPUSH from 1 2", "RENAME from k"],
        &["RPUSH from 1 2", "RENAMENX from k"],
        &["RPUSH from 1 2", "COPY from k"],
        &["RPUSH from 1 2", "LMOVE from k LEFT LEFT"],
        &["RPUSH from 1 2", "RPOPLPUSH from k"],
        &["SELECT 1", "RPUSH k 1 2", "MOVE k 0", "SELECT 0"],
        &["SELECT 1", "RPUSH k 1 2", "COPY k k DB 0", "SELECT 0"],
        &["SELECT 1", "RPUSH k 1 2", "SELECT 0", "SWAPDB 0 1"],
        &["SELECT 1", "RPUSH k 1 2", "SELECT 0", "SWAPDB 1 0", "SWAPDB 0 1"],
        &["SELECT 1", "RPUSH k 1 2", "SELECT 0"],
        &["SET k x", "DEL k", "RPUSH k 1"],
        &["SET k x"],
        &["SET k x", "RPUSH k 1"],
        &["SET k x", "RPUSH from 1", "RENAME from k"],
        &["RPUSH from 1", "COPY from k REPLACE"],
        &["FLUSHDB", "FLUSHALL"],
        &["RPUSH other x", "RPUSH k 1"],
        &["SET l x", "RPUSH k 1"],
        &["MULTI", "RPUSH k 1", "EXPIRE k 100", "EXEC"],
        &["MULTI", "RPUSH k 1", "EXPIRE k -1", "EXEC"],
    ];
    WAITS.iter().flat_map(|wait| {
        WRITES.iter().map(move |writes| {
            let acts: String = writes.iter().map(|write| format!("b: {write}\n")).collect();
            let script = format!(
                "a> {wait}\n{acts}b: CLIENT UNBLOCK @a ERROR\na<\na: TYPE k\na: LRANGE k 0 -1\na: LRANGE l 0 -1\na: LRANGE other 0 -1\na: TTL k\na: DBSIZE\n"
            );
            // Whether somebody was served is part of the comparison: the reply to CLIENT UNBLOCK tells.
            (format!("{wait} while {writes:?}"), script)
        })
    })
}

/// A watched key, in several states, and what happens to it before EXEC.
fn watching_every_kind_of_change() -> impl Iterator<Item = (String, String)> {
    const STATES: &[&[&str]] = &[&[], &["SET k 1"], &["SET k 1 EX 1000"], &["RPUSH k 1 2 3"]];
    const CHANGES: &[&[&str]] = &[
        &[],
        &["GET k", "EXISTS k", "TYPE k", "TTL k", "LRANGE k 0 -1", "STRLEN k"],
        &["SET k 1"],
        &["SET k 1 NX"],
        &["SET k 1 XX"],
        &["SET k 1 KEEPTTL"],
        &["GETSET k 1"],
        &["GETEX k"],
        &["GETEX k EX 100"],
        &["GETEX k PERSIST"],
        &["GETDEL k"],
        &["APPEND k \"\""],
        &["SETRANGE k 0 \"\""],
        &["SETRANGE k 0 1"],
        &["INCRBY k 0"],
        &["INCRBYFLOAT k 0"],
        &["MSET k 1 l 1"],
        &["MSETNX k 1 l 1"],
        &["MGET k l"],
        &["EXPIRE k 100"],
        &["EXPIRE k 100 NX"],
        &["EXPIRE k 100 GT"],
        &["EXPIRE k -1"],
        &["PERSIST k"],
        &["DEL k"],
        &["UNLINK k"],
        &["TOUCH k"],
        &["SET k 2", "DEL k"],
        &["COPY k l"],
        &["COPY k k DB 1"],
        &["COPY l k"],
        &["RENAME k k"],
        &["RENAME k l", "RENAME l k"],
        &["RENAME l k"],
        &["MOVE k 1"],
        &["LPUSH k 1"],
        &["LPUSHX k 1"],
        &["LPOP k"],
        &["LPOP k 0"],
        &["RPOP k 2"],
        &["LSET k 0 1"],
        &["LREM k 0 nothing"],
        &["LREM k 0 1"],
        &["LTRIM nothing 0 -1"],
        &["LTRIM k 1 0"],
        &["LINSERT k BEFORE nothing x"],
        &["LINSERT k BEFORE 1 x"],
        &["LMOVE k k LEFT LEFT"],
        &["LMOVE k k LEFT RIGHT"],
        &["LMOVE k l LEFT RIGHT"],
        &["LMPOP 2 nothing k LEFT"],
        &["LPOS k 1"],
        &["BLPOP k 0.001"],
        &["BLMOVE k k LEFT LEFT 0.001"],
        &["FLUSHALL"],
        &["FLUSHDB"],
        &["SELECT 1", "FLUSHDB", "SELECT 0"],
        &["SELECT 1", "SET k 1", "DEL k", "SELECT 0"],
        &["SWAPDB 0 1"],
        &["SWAPDB 0 1", "SWAPDB 0 1"],
        &["SWAPDB 1 2"],
        &["SELECT 1", "SET k 1", "SELECT 0", "SWAPDB 0 1"],
        &["SELECT 1", "SET k 1", "SELECT 0", "SWAPDB 1 2"],
        &["MULTI", "SET k 1", "DEL k", "EXEC"],
        &["MULTI", "SET l 1", "EXEC"],
        &["MULTI", "SET k 1", "DISCARD"],
        &["MULTI", "SET k 1", "FLUSHALL", "EXEC"],
        &["MULTI", "DBSIZE", "LPUSH k 1", "EXEC"],
    ];
    STATES.iter().flat_map(|states| {
        CHANGES.iter().flat_map(move |changes| {
            ["a", "b"].into_iter().map(move |who| {
                let before: String = states.iter().map(|line| format!("a: {line}\n")).collect();
                let between: String = changes.iter().map(|line| format!("{who}: {line}\n")).collect();
                let script =
                    format!("{before}a: WATCH l k k\n{between}a: MULTI\na: PING\na: SET seen 1\na: EXEC\na: DBSIZE\n");
                (format!("{who} does {changes:?} to what {states:?} left, watched"), script)
            })
        })
    })
}

const SCENES: &[(&str, &str)] = &[
    (
        "several wait for one key",
        "
        a> BLPOP k 0
        b> BRPOP k 0
        c> BLMPOP 0 1 k LEFT COUNT 2
        d: RPUSH k 1 2 3 4 5
        a<
        b<
        c<
        d: LRANGE k 0 -1
        ",
    ),
    (
        "more wait than are served",
        "
        a> BLPOP k 0
        b> BLPOP k 0
        c> BLPOP k 0
        d: RPUSH k 1 2
        a<
        b<
        d: CLIENT UNBLOCK @c
        c<
        d: EXISTS k
        ",
    ),
    (
        "several wait for several keys",
        "
        a> BLPOP k1 k2 0
        b> BLPOP k2 k1 0
        c> BRPOP k3 k2 k1 0
        d: RPUSH k2 1
        a<
        d: RPUSH k1 2
        b<
        d: RPUSH k3 3
        c<
        d: DBSIZE
        ",
    ),
    (
        "who waits twice for one key",
        "
        a> BLPOP k k k 0
        d: RPUSH k 1 2
        a<
        a> BLPOP l k2 l 0
        d: RPUSH l 1 2
        a<
        d: LRANGE k 0 -1
        d: LRANGE l 0 -1
        ",
    ),
    (
        "elements go through several waiters",
        "
        a> BLMOVE k1 k2 LEFT RIGHT 0
        b> BLMOVE k2 k3 LEFT RIGHT 0
        c> BLPOP k3 0
        d: RPUSH k1 1
        a<
        b<
        c<
        d: DBSIZE
        ",
    ),
    (
        "elements go through several waiters that came the other way round",
        "
        a> BLPOP k3 0
        b> BLMOVE k2 k3 LEFT RIGHT 0
        c> BLMOVE k1 k2 LEFT RIGHT 0
        d: RPUSH k1 1 2
        a<
        b<
        c<
        d: KEYS *
        d: LRANGE k1 0 -1
        ",
    ),
    (
        "two hand an element to each other",
        "
        a> BLMOVE k1 k2 LEFT RIGHT 0
        b> BLMOVE k2 k1 LEFT RIGHT 0
        d: RPUSH k1 1
        a<
        b<
        d: LRANGE k1 0 -1
        d: LRANGE k2 0 -1
        ",
    ),
    (
        "a list turned round by several",
        "
        a> BRPOPLPUSH k k 0
        b> BLMOVE k k LEFT LEFT 0
        c> BLMOVE k k LEFT RIGHT 0
        d: RPUSH k 1 2 3
        a<
        b<
        c<
        d: LRANGE k 0 -1
        ",
    ),
    (
        "a destination that is no list",
        "
        d: SET to x
        a> BLMOVE from to LEFT RIGHT 0
        b> BRPOPLPUSH from to 0
        d: RPUSH from 1
        a<
        b<
        c> BLMOVE from2 to LEFT RIGHT 0
        a> BLPOP from2 0
        d: RPUSH from2 1
        c<
        a<
        d: LRANGE from 0 -1
        d: EXISTS from2
        a: BLMOVE from to LEFT RIGHT 0
        a: BLMOVE nothing to LEFT RIGHT 0.001
        ",
    ),
    (
        "a key that is no list",
        "
        d: SET k x
        a: BLPOP k 0
        a: BLPOP nothing k 0
        a: BLMOVE k l LEFT LEFT 0
        a: BLMPOP 0 2 nothing k LEFT
        d: RPUSH l 1
        a: BLPOP l k 0
        d: RPUSH l 1
        a: BLPOP nothing l k 0
        d: DEL k
        b> BLPOP k 0
        d: SET k x
        d: APPEND k y
        d: DEL k
        d: LPUSH k 2
        b<
        ",
    ),
    (
        "time-outs",
        "
        a: BLPOP k 0.001
        a: BLMOVE k l LEFT RIGHT 0.001
        a: BRPOPLPUSH k l 0.001
        a: BLMPOP 0.001 1 k LEFT
        a: BLPOP k -1
        a: BLPOP k -0.5
        a: BLPOP k x
        a: BLPOP k nan
        a: BLPOP k \"\"
        a: BLMPOP x 1 k LEFT
        a: BLMPOP 0.001 0 k LEFT
        a: BLMPOP 0.001 1 k MIDDLE
        a: BLMPOP 0.001 1 k LEFT COUNT 0
        a: BLMPOP 0.001 1 k LEFT COUNT 1 COUNT 1
        a: BLMPOP -1 0 k LEFT
        a: BLMPOP 0.001 3 k LEFT
        a: BLMOVE k l UP DOWN x
        a: BLMOVE k l LEFT LEFT -1
        a: WAIT 1 1
        a: WAIT 0 0
        a: WAIT -1 0
        a: WAIT 1 -1
        a: WAIT 1 x
        a: WAIT x 1
        a: WAIT x x
        a: WAIT 1 1.5
        a: CLIENT PAUSE -1
        a: CLIENT PAUSE x
        a: CLIENT PAUSE 1 x
        a: CLIENT PAUSE x x
        a: CLIENT PAUSE 0
        a: CLIENT UNPAUSE
        a: CLIENT UNPAUSE x
        a: CLIENT UNBLOCK
        a: CLIENT UNBLOCK x
        a: CLIENT UNBLOCK x x
        a: CLIENT UNBLOCK 999999
        a: CLIENT UNBLOCK -1
        a: CLIENT UNBLOCK @a
        a: CLIENT UNBLOCK 999999 x
        ",
    ),
    (
        "nobody waits within EXEC",
        "
        a: MULTI
        a: BLPOP k 0
        a: BLPOP k -0.0001
        a: BRPOP k l 0
        a: BLMOVE k l LEFT LEFT 0
        a: BRPOPLPUSH k l 0
        a: BLMPOP 0 2 k l LEFT
        a: WAIT 1 0
        a: BLPOP k -1
        a: RPUSH k 1 2 3 4 5
        a: BLPOP l k 0
        a: BRPOP k 0
        a: BLMOVE k l LEFT LEFT 0
        a: BRPOPLPUSH k l 0
        a: BLMPOP 0 2 k l LEFT
        a: EXEC
        a: KEYS *
        ",
    ),
    (
        "waits that others end",
        "
        a> BLPOP k 0
        b: CLIENT UNBLOCK @a
        a<
        a> BLMOVE k l LEFT LEFT 0
        b: CLIENT UNBLOCK @a TIMEOUT
        a<
        a> BLMPOP 0 1 k LEFT
        b: CLIENT UNBLOCK @a timeout
        a<
        a> BRPOPLPUSH k l 0
        b: CLIENT UNBLOCK @a ERROR
        a<
        a> WAIT 1 0
        b: CLIENT UNBLOCK @a
        a<
        a> WAIT 1 0
        b: CLIENT UNBLOCK @a ERROR
        a<
        a> BRPOP k 0
        b: MULTI
        b: CLIENT UNBLOCK @a
        b: CLIENT UNBLOCK @a
        b: RPUSH k 1
        b: EXEC
        a<
        b: LRANGE k 0 -1
        b: DEL k
        a> BRPOP k 0
        b: CLIENT KILL ID @a
        a<
        b: RPUSH k 1
        b: LRANGE k 0 -1
        ",
    ),
    (
        "what comes behind a wait",
        "
        a> BLPOP k 0
        a~ SET after 1
        a~ BLPOP k 0
        a~ GET after
        b: GET after
        b: RPUSH k 1
        a<
        a<
        b: RPUSH k 2
        a<
        a<
        ",
    ),
    (
        "transactions that are refused",
        "
        a: EXEC
        a: DISCARD
        a: EXEC x
        a: MULTI x
        a: WATCH
        a: UNWATCH x
        a: MULTI
        a: SET k 1
        a: EXEC x
        a: GET k
        a: EXEC
        a: WATCH k
        b: SET k 2
        a: EXEC x
        a: MULTI
        a: EXEC
        a: MULTI
        a: SET k
        a: SET k 3
        a: EXEC
        a: EXEC
        a: MULTI
        a: NOSUCH
        a: DISCARD
        a: GET k
        a: MULTI
        a: CONFIG NOSUCH
        a: CLIENT
        a: EXEC
        a: MULTI
        a: DISCARD x
        a: DISCARD
        a: MULTI
        a: MONITOR
        a: EXEC
        a: WATCH k
        b: SET k 1
        a: MULTI
        a: SET k
        a: EXEC
        a: MULTI
        a: GET k
        a: EXEC
        ",
    ),
    (
        "memory is short",
        "
        a: MULTI
        a: SET k 1
        b: MULTI
        b: GET k
        b: CONFIG SET maxmemory 0
        c: CONFIG SET maxmemory 1
        a: EXEC
        b: EXEC
        c: CONFIG SET maxmemory 1
        a: MULTI
        a: SET k 1
        c: CONFIG SET maxmemory 0
        a: EXEC
        a: GET k
        ",
    ),
    (
        "transactions that run",
        "
        a: MULTI
        a: EXEC
        a: MULTI
        a: SET k 1
        a: INCR k
        a: LPUSH k x
        a: INCR k
        a: LPUSH l x y
        a: LLEN l
        a: RENAME l m
        a: EXISTS l m
        a: TTL m
        a: EXPIRE m 1000
        a: TTL m
        a: COPY m n
        a: TTL n
        a: DBSIZE
        a: EXEC
        a: MULTI
        a: SELECT 1
        a: SET k one
        a: SELECT 99
        a: GET k
        a: SELECT x
        a: SWAPDB 0 1
        a: GET k
        a: SELECT 0
        a: GET k
        a: MOVE k 2
        a: SELECT 2
        a: GET k
        a: EXEC
        a: GET k
        a: MULTI
        a: PING
        a: PING x
        a: ECHO x
        a: CLIENT SETNAME me
        a: CLIENT GETNAME
        a: CONFIG SET maxclients x
        a: OBJECT NOSUCH
        a: UNWATCH
        a: PUBLISH one x
        a: AUTH x y
        a: AUTH x
        a: FLUSHALL
        a: KEYS *
        a: DBSIZE
        a: SET k 1 PXAT 1
        a: GET k
        a: EXISTS k
        a: EXEC
        a: MULTI
        a: SET k 1
        a: RESET
        a: EXEC
        a: MULTI
        a: SET k 1
        a: QUIT
        b: GET k
        ",
    ),
    (
        "protocols change within EXEC",
        "
        a: MULTI
        a: GET nothing
        a: HELLO 3
        a: GET nothing
        a: LPOP nothing 2
        a: CLIENT GETNAME
        a: HELLO 2
        a: GET nothing
        a: LPOP nothing 2
        a: CLIENT GETNAME
        a: HELLO 4
        a: GET nothing
        a: EXEC
        ",
    ),
    (
        "who watches, and who forgets that",
        "
        a: WATCH k
        a: UNWATCH
        b: SET k 1
        a: MULTI
        a: EXEC
        a: WATCH k
        b: SET k 1
        a: MULTI
        a: DISCARD
        a: MULTI
        a: EXEC
        a: WATCH k
        b: SET k 1
        a: EXEC
        a: MULTI
        a: EXEC
        a: MULTI
        a: EXEC
        a: WATCH k
        b: SET k 1
        a: RESET
        a: MULTI
        a: EXEC
        a: WATCH k
        a: MULTI
        a: SET k 1
        b: SET k 1
        a: UNWATCH
        a: EXEC
        a: WATCH k
        a: SELECT 1
        b: SET k 2
        a: MULTI
        a: EXEC
        a: WATCH k
        b: SET k 2
        a: MULTI
        a: EXEC
        a: WATCH k k k
        a: WATCH k
        b: SELECT 1
        b: INCR k
        a: MULTI
        a: EXEC
        ",
    ),
    (
        "a watched key expires",
        "
        a: SET k 1 PX 500
        a: WATCH k
        b? EXISTS k => :0
        a: MULTI
        a: PING
        a: EXEC
        a: SET k 1 PX 500
        a: WATCH k
        a: MULTI
        a: PING
        b? EXISTS k => :0
        b: SET k 1
        a: EXEC
        a: WATCH k
        a: MULTI
        a: PING
        b: PEXPIRE k 500
        b? EXISTS k => :0
        a: EXEC
        ",
    ),
    (
        "a key watched when it had expired already",
        "
        b: DEBUG SET-ACTIVE-EXPIRE 0
        a: SET k 1 PX 1
        a: DEBUG SLEEP 0.01
        a: WATCH k
        b: EXISTS k
        a: MULTI
        a: PING
        a: EXEC
        a: SET k 1 PX 1
        a: DEBUG SLEEP 0.01
        a: WATCH k
        b: SET k 1
        a: MULTI
        a: PING
        a: EXEC
        a: SET k 1 PX 1
        a: DEBUG SLEEP 0.01
        a: WATCH k
        b: FLUSHALL
        a: MULTI
        a: PING
        a: EXEC
        b: DEBUG SET-ACTIVE-EXPIRE 1
        ",
    ),
    (
        "writes pause",
        "
        c: MULTI
        c: SET k 1
        c: GET k
        d: MULTI
        d: GET k
        b: CLIENT PAUSE 100000 WRITE
        a: GET k
        a: PING
        d: EXEC
        c~ EXEC
        d~ SET l 1
        a: GET k
        a: GET l
        b: CLIENT UNPAUSE
        c<
        d<
        a: GET k
        a: GET l
        ",
    ),
    (
        "writes pause while somebody waits",
        "
        a> BLPOP k 0
        b: CLIENT PAUSE 100000 WRITE
        c~ RPUSH k 1 2
        d~ BLPOP k 0
        b: EXISTS k
        b: CLIENT UNPAUSE
        a<
        c<
        d<
        b: EXISTS k
        ",
    ),
    (
        "all pause",
        "
        b: CLIENT PAUSE 300 ALL
        a~ GET k
        b~ SET l 1
        a<
        b<
        b: CLIENT PAUSE 10
        a: PING
        b: CLIENT PAUSE 100000 WRITE
        b: CLIENT PAUSE 1 WRITE
        a~ SET k 1
        b: GET k
        b: CLIENT UNPAUSE
        a<
        b: CLIENT PAUSE 100000 WRITE
        a~ PUBLISH one x
        c: MULTI
        c~ SET k 2
        b: GET k
        b: CLIENT UNPAUSE
        a<
        c<
        c: EXEC
        ",
    ),
];

/// What Redis 7.0 did otherwise.
const SINCE_7_2: &[(&str, &str)] = &[
    (
        "a command that has waited runs again, and finds what it would have found at first",
        "
        a> BLPOP k1 k2 k3 0
        d: MULTI
        d: RPUSH k3 3
        d: RPUSH k1 1
        d: EXEC
        a<
        d: KEYS *
        a> BLPOP k m 0
        d: SET k x
        d: RPUSH m 1
        a<
        d: LRANGE m 0 -1
        ",
    ),
    (
        "the longest time-outs",
        "
        a: BLPOP k inf
        a: BLPOP k -inf
        a: BLPOP k 1e300
        a: BLPOP k -1e300
        a: BLPOP k 9223372036854775807
        a: BLPOP k 9223372036854775.9
        a: WAIT 1 9223372036854775807
        ",
    ),
    (
        "a watched list is trimmed to what it is",
        "
        a: RPUSH k 1 2 3
        a: WATCH k
        b: LTRIM k 0 -1
        a: MULTI
        a: EXEC
        ",
    ),
];

/// What Valkey does otherwise: it refuses more within MULTI, reads surplus arguments otherwise, and lists no transaction as an empty one.
const UNLIKE_VALKEY: &[(&str, &str)] = &[
    (
        "commands that are never queued",
        "
        a: MULTI
        a: MULTI
        a: WATCH k
        a: SET k 1
        a: EXEC
        a: MULTI
        a: SHUTDOWN NOSAVE
        a: EXEC
        ",
    ),
    (
        "surplus arguments",
        "
        a: CLIENT PAUSE 1 WRITE x
        a: CLIENT UNBLOCK 999999 ERROR x
        ",
    ),
    (
        "how clients are listed",
        "
        a> BLPOP k 0
        b: CLIENT LIST ID @a
        b: CLIENT UNBLOCK @a
        a<
        a> WAIT 1 0
        b: CLIENT LIST ID @a
        b: CLIENT UNBLOCK @a
        a<
        a: MULTI
        b: CLIENT LIST ID @a
        a: GET k
        a: SET k 1
        b: CLIENT LIST ID @a
        a: GET
        b: CLIENT LIST ID @a
        a: EXEC
        b: CLIENT LIST ID @a
        a: WATCH k
        b: CLIENT LIST ID @a
        a: UNWATCH
        a: CLIENT LIST ID @a
        a: CLIENT INFO
        a: MULTI
        a: CLIENT INFO
        a: CLIENT LIST ID @a
        a: EXEC
        a: CLIENT NO-EVICT ON
        a: CLIENT INFO
        a: SELECT 3
        a: CLIENT INFO
        a: NOSUCH
        b: CLIENT LIST ID @a
        a: GET
        b: CLIENT LIST ID @a
        a: SUBSCRIBE one
        b: CLIENT LIST ID @a
        ",
    ),
];
