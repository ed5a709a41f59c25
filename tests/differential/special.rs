//! Commands whose arguments cannot be drawn from their syntax: because it does not say enough, or because some arguments would stop
//! or change the server under test.

use crate::draw::Draw;
use crate::lines::{Catalogue, Subject};
use crate::values::Values;

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').filter(|word| !word.is_empty()).map(|word| word.as_bytes().to_vec()).collect()
}

/// The arguments after the command's name; `None` for a command whose syntax says all.
pub fn arguments(
    catalogue: &Catalogue,
    subject: &Subject,
    draw: &mut Draw,
    values: &mut Values,
) -> Option<Vec<Vec<u8>>> {
    let line = match subject.full_name.as_str() {
        // Lists of many pieces.
        "rpush" | "lpush" if draw.chance(4) => {
            let mut arguments = vec![values.key(draw)];
            arguments.extend((0..draw.below(600)).map(|_| values.string(draw)));
            return Some(arguments);
        }
        // Stopping is tested elsewhere; here are all the ways in which it is refused.
        "shutdown" => draw.pick(&[
            "ABORT",
            "abort now",
            "SAVE NOSAVE",
            "nosave save force",
            "FORCE ABORT",
            "NOW NOSAVE ABORT",
            "SAVE ABORT",
            "x",
            "NOW FORCE x",
            "SAVE FORCE NOW x",
        ]),
        "debug" => draw.pick(&[
            "",
            "SLEEP 0",
            "SLEEP x",
            "SLEEP",
            "SET-ACTIVE-EXPIRE 1",
            "SET-ACTIVE-EXPIRE",
            "QUICKLIST-PACKED-THRESHOLD 100b",
            "QUICKLIST-PACKED-THRESHOLD 0",
            "QUICKLIST-PACKED-THRESHOLD x",
            "CHANGE-REPL-ID",
            "OBJECT",
            "OBJECT nosuchkey",
            "LISTPACK nosuchkey",
            "LISTPACK",
            "nosuch",
            "HTSTATS x",
            "HTSTATS 99",
        ]),
        "config|get" => draw.pick(&[
            "maxmemory",
            "maxmemory-policy",
            "timeout tcp-keepalive",
            "list-max-*",
            "nosuch",
            "maxmemory maxmemory",
            "MAXMEMORY",
            "proto-max-bulk-len",
            "latency-tracking",
            "lfu-*",
        ]),
        "config|set" => draw.pick(&[
            "lfu-log-factor 11",
            "lfu-log-factor 10 lfu-decay-time 1",
            "lfu-log-factor x",
            "lfu-log-factor -1",
            "nosuch 1",
            "lfu-log-factor 10 nosuch 1",
            "lfu-log-factor 10 lfu-log-factor 11",
            "lfu-log-factor",
            "maxmemory-policy nosuch",
            "databases 3",
            "maxmemory-samples 5 timeout 0",
            "maxmemory 100x",
            "timeout 0 x",
            "appendonly maybe",
        ]),
        "client|kill" if draw.chance(30) => draw.pick(&[
            "ID 999999999",
            "ID 0",
            "ID x",
            "ADDR 1.2.3.4:5",
            "LADDR 1.2.3.4:5",
            "LADDR x SKIPME yes",
            "TYPE pubsub",
            "TYPE replica",
            "TYPE slave SKIPME no",
            "TYPE master",
            "TYPE nosuch",
            "USER nosuch",
            "USER default ID 999999999",
            "USER",
            "SKIPME maybe",
            "TYPE normal ADDR 1.2.3.4:5 SKIPME yes",
            "TYPE normal ID 999999999 SKIPME no",
            "1.2.3.4:5",
            "NOSUCH x",
            "ID 5 x",
        ]),
        "hello" if draw.chance(15) => {
            draw.pick(&["2 x", "3 SETNAME", "3 SETNAME ü", "2 SETNAME \n", "2 AUTH default", "2 AUTH", "x 2", "3 \0"])
        }
        "client|list" if draw.chance(50) => {
            draw.pick(&["", "TYPE normal", "TYPE master", "TYPE x", "ID 1 x", "ID 99999999", "TYPE"])
        }
        "command|info" | "command|docs" => draw.pick(&["nosuch", "nosuch|x", "get|x", ""]),
        "command|list" => draw.pick(&[
            "FILTERBY MODULE x",
            "FILTERBY ACLCAT nosuch",
            "FILTERBY PATTERN nosuch",
            "FILTERBY PATTERN get",
            "FILTERBY PATTERN CLIENT|KIL[kL]",
            "FILTERBY NOSUCH x",
            "FILTERBY",
            "x",
            "FILTERBY MODULE x FILTERBY MODULE x",
            "FILTERBY ACLCAT @string",
        ]),
        "command|getkeys" | "command|getkeysandflags" => {
            let with_keys: Vec<_> =
                (0..catalogue.subjects.len()).filter(|index| !catalogue.subjects[*index].row.keys.is_empty()).collect();
            let chosen = if draw.chance(85) {
                with_keys[draw.below(with_keys.len())]
            } else {
                draw.below(catalogue.subjects.len())
            };
            let name = &catalogue.subjects[chosen].full_name;
            if name.starts_with("command|getkeys") {
                return Some(words("nosuch"));
            }
            return Some(catalogue.line(chosen, draw, values).words);
        }
        "eval" | "eval_ro" => {
            let script = draw.pick(&[
                "return redis.call('get', KEYS[1])",
                "return redis.call('set', KEYS[1], 'v' .. ARGV[1])",
                "return redis.call('rpush', KEYS[1], ARGV[1], ARGV[1])",
                "if #KEYS == 0 then return 0 end return {redis.pcall('lpop', KEYS[1]), redis.pcall('get', KEYS[1])}",
                "redis.call('incr', KEYS[1]) return redis.call('append', KEYS[1], 'x')",
                "return redis.pcall('lrange', KEYS[1], 0, -1)",
                "return {KEYS, ARGV, #KEYS, 1.7, true, false}",
                "redis.setresp(3) return redis.call('get', KEYS[1])",
                "return cjson.encode({KEYS, {a = ARGV[1]}})",
                "#!lua flags=no-writes\nreturn redis.pcall('del', KEYS[1])",
                "#!lua flags=nosuch\nreturn 1",
                "return nosuch",
                "error(ARGV[#ARGV])",
                "x =",
            ]);
            let count = draw.pick(&["1", "1", "1", "1", "0", "2", "x", "-1", "3"]);
            let key = values.key(draw);
            return Some(vec![script.as_bytes().to_vec(), count.as_bytes().to_vec(), key, b"7".to_vec()]);
        }
        "evalsha" | "evalsha_ro" => {
            let digest = draw.pick(&["e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "x", ""]);
            return Some(vec![digest.as_bytes().to_vec(), b"0".to_vec()]);
        }
        "script|load" => return Some(vec![draw.pick(&["return 1", "x =", "", "return 2"]).as_bytes().to_vec()]),
        // Each server's own version stands in the string.
        "function|dump" => "x",
        "script|exists" => return Some(words("e0e1f9fabfc9d4800c877a703b823ac0578ff8db x")),
        "script|debug" => draw.pick(&["no", "NO", "x", "", "no x"]),
        _ => return None,
    };
    Some(words(line))
}
