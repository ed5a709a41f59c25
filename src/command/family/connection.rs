//! Connection commands: who the client is, what it wants, and who else is connected.

use crate::command::args::Args;
use crate::command::blocking::{self, Waiter};
use crate::command::error::{CommandError, CommandResult};
use crate::command::family::tracking;
use crate::command::help;
use crate::command::spec::{Argument, Categories, Flags, Group, Handler, Row};
use crate::command::{Context, exec};
use crate::pubsub::Topic;
use crate::resp::{Protocol, Reply};
use crate::server::{ClientInfo, Server};
use crate::session::{Ending, ReplyMode};
use crate::sync::Ordering;
use crate::txn::{Otherwise, RuntimeLimits, Transaction, Wait};

const ON_OR_OFF: Argument = Argument::one_of("enabled", &[Argument::word("on", "ON"), Argument::word("off", "OFF")]);

/// Flags of the commands that stop clients and let them go on.
const PAUSING: Flags = Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE);

/// The commands of this family.
pub static ROWS: &[Row] = &[
    Row {
        name: "asking",
        summary: "Lets the next command follow an ASK redirection of a cluster.",
        handler: Handler::Server(asking),
        arity: 1,
        flags: Flags::FAST,
        categories: Categories::CONNECTION,
        since: "3.0.0",
        group: Group::Cluster,
        ..Row::DEFAULT
    },
    Row {
        name: "auth",
        summary: "Proves who the client is, by a password.",
        handler: Handler::Server(auth),
        arity: -2,
        flags: Flags::NOSCRIPT
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(Flags::FAST)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY),
        categories: Categories::CONNECTION,
        group: Group::Connection,
        complexity: "O(N) with N the passwords of the user",
        history: &[("6.0.0", "A user name may come before the password.")],
        arguments: &[Argument::string("username").since("6.0.0").optional(), Argument::string("password")],
        ..Row::DEFAULT
    },
    Row {
        name: "client",
        summary: "Looks at connections and steers them.",
        arity: -2,
        since: "2.4.0",
        group: Group::Connection,
        complexity: "Depends on the subcommand",
        subcommands: &[
            Row {
                name: "caching",
                summary: "Says whether the keys of the next command are tracked, where that is asked for one by one.",
                handler: Handler::Server(tracking::client_caching),
                arity: 3,
                flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                since: "6.0.0",
                group: Group::Connection,
                arguments: &[Argument::one_of("mode", &[Argument::word("yes", "YES"), Argument::word("no", "NO")])],
                ..Row::DEFAULT
            },
            Row {
                name: "getname",
                summary: "Gives the name that the connection has set.",
                handler: Handler::Server(client_getname),
                arity: 2,
                flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                since: "2.6.9",
                group: Group::Connection,
                ..Row::DEFAULT
            },
            Row {
                name: "getredir",
                summary: "Gives the client that receives this connection's tracking messages.",
                handler: Handler::Server(client_getredir),
                arity: 2,
                flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                since: "6.0.0",
                group: Group::Connection,
                ..Row::DEFAULT
            },
            Row {
                name: "help",
                summary: "Lists the subcommands.",
                handler: Handler::Server(client_help),
                arity: 2,
                flags: Flags::LOADING.or(Flags::STALE),
                categories: Categories::CONNECTION,
                since: "5.0.0",
                group: Group::Connection,
                ..Row::DEFAULT
            },
            Row {
                name: "id",
                summary: "Gives the number of the connection.",
                handler: Handler::Server(client_id),
                arity: 2,
                flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                since: "5.0.0",
                group: Group::Connection,
                ..Row::DEFAULT
            },
            Row {
                name: "info",
                summary: "Describes this connection.",
                handler: Handler::Server(client_info),
                arity: 2,
                flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                tips: &["nondeterministic_output"],
                since: "6.2.0",
                group: Group::Connection,
                ..Row::DEFAULT
            },
            Row {
                name: "kill",
                summary: "Closes connections chosen by address or by filters.",
                handler: Handler::Server(client_kill),
                arity: -3,
                flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                since: "2.4.0",
                group: Group::Connection,
                complexity: "O(N) with N clients",
                history: &[
                    ("2.8.12", "Filters by name and value."),
                    ("2.8.12", "Filter `ID`."),
                    ("3.2.0", "Type `master`."),
                    ("5.0.0", "Type `replica`; `slave` stays as its other name."),
                    ("6.2.0", "Filter `LADDR`."),
                ],
                arguments: &[Argument::one_of(
                    "filter",
                    &[
                        Argument::string("old-format").shown_as("ip:port").deprecated("2.8.12"),
                        Argument::one_of(
                            "new-format",
                            &[
                                Argument::integer("client-id").token("ID").since("2.8.12").optional(),
                                Argument::one_of(
                                    "client-type",
                                    &[
                                        Argument::word("normal", "NORMAL"),
                                        Argument::word("master", "MASTER").since("3.2.0"),
                                        Argument::word("slave", "SLAVE"),
                                        Argument::word("replica", "REPLICA").since("5.0.0"),
                                        Argument::word("pubsub", "PUBSUB"),
                                    ],
                                )
                                .token("TYPE")
                                .since("2.8.12")
                                .optional(),
                                Argument::string("username").token("USER").optional(),
                                Argument::string("addr").token("ADDR").shown_as("ip:port").optional(),
                                Argument::string("laddr").token("LADDR").shown_as("ip:port").since("6.2.0").optional(),
                                Argument::one_of("skipme", &[Argument::word("yes", "YES"), Argument::word("no", "NO")])
                                    .token("SKIPME")
                                    .optional(),
                            ],
                        )
                        .multiple(),
                    ],
                )],
                ..Row::DEFAULT
            },
            Row {
                name: "list",
                summary: "Describes the open connections.",
                handler: Handler::Server(client_list),
                arity: -2,
                flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                tips: &["nondeterministic_output"],
                since: "2.4.0",
                group: Group::Connection,
                complexity: "O(N) with N clients",
                history: &[
                    ("2.8.12", "Field `id`."),
                    ("5.0.0", "Filter `TYPE`."),
                    ("6.0.0", "Field `user`."),
                    ("6.2.0", "Fields `argv-mem`, `tot-mem`, `laddr` and `redir`; filter `ID`."),
                    ("7.0.0", "Fields `resp`, `multi-mem`, `rbs` and `rbp`."),
                    ("7.0.3", "Field `ssub`."),
                    ("7.2.0", "Fields `lib-name` and `lib-ver`."),
                ],
                arguments: &[
                    Argument::one_of(
                        "client-type",
                        &[
                            Argument::word("normal", "NORMAL"),
                            Argument::word("master", "MASTER"),
                            Argument::word("replica", "REPLICA"),
                            Argument::word("pubsub", "PUBSUB"),
                        ],
                    )
                    .token("TYPE")
                    .since("5.0.0")
                    .optional(),
                    Argument::integer("client-id").token("ID").since("6.2.0").optional().multiple(),
                ],
                ..Row::DEFAULT
            },
            Row {
                name: "no-evict",
                summary: "Exempts the connection from being closed when clients use too much memory.",
                handler: Handler::Server(client_no_evict),
                arity: 3,
                flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                since: "7.0.0",
                group: Group::Connection,
                arguments: &[ON_OR_OFF],
                ..Row::DEFAULT
            },
            Row {
                name: "no-touch",
                summary: "Stops this connection's commands from marking keys as used.",
                handler: Handler::Server(client_no_touch),
                arity: 3,
                flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                since: "7.2.0",
                group: Group::Connection,
                arguments: &[ON_OR_OFF],
                ..Row::DEFAULT
            },
            Row {
                name: "pause",
                summary: "Lets no client's commands run for some time, or none that write.",
                handler: Handler::Server(client_pause),
                arity: -3,
                flags: PAUSING,
                categories: Categories::CONNECTION,
                since: "3.0.0",
                group: Group::Connection,
                history: &[("6.2.0", "The mode, which may be WRITE.")],
                arguments: &[
                    Argument::integer("timeout"),
                    Argument::one_of("mode", &[Argument::word("write", "WRITE"), Argument::word("all", "ALL")])
                        .since("6.2.0")
                        .optional(),
                ],
                ..Row::DEFAULT
            },
            Row {
                name: "reply",
                summary: "Switches replies on or off, or skips the next one.",
                handler: Handler::Server(client_reply),
                arity: 3,
                flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                since: "3.2.0",
                group: Group::Connection,
                arguments: &[Argument::one_of(
                    "action",
                    &[Argument::word("on", "ON"), Argument::word("off", "OFF"), Argument::word("skip", "SKIP")],
                )],
                ..Row::DEFAULT
            },
            Row {
                name: "setinfo",
                summary: "Records the client library's name or version.",
                handler: Handler::Server(client_setinfo),
                arity: 4,
                flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                since: "7.2.0",
                group: Group::Connection,
                arguments: &[Argument::one_of(
                    "attr",
                    &[Argument::string("libname").token("LIB-NAME"), Argument::string("libver").token("LIB-VER")],
                )],
                ..Row::DEFAULT
            },
            Row {
                name: "setname",
                summary: "Gives the connection a name.",
                handler: Handler::Server(client_setname),
                arity: 3,
                flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                since: "2.6.9",
                group: Group::Connection,
                arguments: &[Argument::string("connection-name")],
                ..Row::DEFAULT
            },
            Row {
                name: "tracking",
                summary: "Has the connection told of keys that change, for a cache of its own.",
                handler: Handler::Server(tracking::client_tracking),
                arity: -3,
                flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                since: "6.0.0",
                group: Group::Connection,
                complexity: "O(1), and O(N) per written key with N the prefixes of all clients",
                arguments: &[
                    Argument::one_of("status", &[Argument::word("on", "ON"), Argument::word("off", "OFF")]),
                    Argument::integer("client-id").token("REDIRECT").optional(),
                    Argument::string("prefix").token("PREFIX").optional().multiple_token(),
                    Argument::word("bcast", "BCAST").optional(),
                    Argument::word("optin", "OPTIN").optional(),
                    Argument::word("optout", "OPTOUT").optional(),
                    Argument::word("noloop", "NOLOOP").optional(),
                ],
                ..Row::DEFAULT
            },
            Row {
                name: "trackinginfo",
                summary: "Describes the connection's tracking.",
                handler: Handler::Server(tracking::client_trackinginfo),
                arity: 2,
                flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE),
                categories: Categories::CONNECTION,
                since: "6.2.0",
                group: Group::Connection,
                ..Row::DEFAULT
            },
            Row {
                name: "unblock",
                summary: "Ends the wait of another connection's command.",
                handler: Handler::Data(client_unblock),
                arity: -3,
                flags: PAUSING,
                categories: Categories::CONNECTION,
                since: "5.0.0",
                group: Group::Connection,
                complexity: "O(log N) with N the connections",
                arguments: &[
                    Argument::integer("client-id"),
                    Argument::one_of(
                        "unblock-type",
                        &[Argument::word("timeout", "TIMEOUT"), Argument::word("error", "ERROR")],
                    )
                    .optional(),
                ],
                ..Row::DEFAULT
            },
            Row {
                name: "unpause",
                summary: "Lets paused clients' commands run again.",
                handler: Handler::Server(client_unpause),
                arity: 2,
                flags: PAUSING,
                categories: Categories::CONNECTION,
                since: "6.2.0",
                group: Group::Connection,
                complexity: "O(N) with N the paused clients",
                ..Row::DEFAULT
            },
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "echo",
        summary: "Gives its argument back.",
        handler: Handler::Server(echo),
        arity: 2,
        flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
        categories: Categories::CONNECTION,
        group: Group::Connection,
        arguments: &[Argument::string("message")],
        ..Row::DEFAULT
    },
    Row {
        name: "hello",
        summary: "Chooses the protocol version, and may authenticate and name the connection on the way.",
        handler: Handler::Server(hello),
        arity: -1,
        flags: Flags::NOSCRIPT
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(Flags::FAST)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY),
        categories: Categories::CONNECTION,
        since: "6.0.0",
        group: Group::Connection,
        history: &[("6.2.0", "Without a version it only reports.")],
        arguments: &[Argument::block(
            "arguments",
            &[
                Argument::integer("protover"),
                Argument::block("auth", &[Argument::string("username"), Argument::string("password")])
                    .token("AUTH")
                    .optional(),
                Argument::string("clientname").token("SETNAME").optional(),
            ],
        )
        .optional()],
        ..Row::DEFAULT
    },
    Row {
        name: "ping",
        summary: "Answers PONG, or its argument.",
        handler: Handler::Server(ping),
        arity: -1,
        flags: Flags::FAST,
        categories: Categories::CONNECTION,
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        group: Group::Connection,
        arguments: &[Argument::string("message").optional()],
        ..Row::DEFAULT
    },
    Row {
        name: "quit",
        summary: "Ends the connection after an answer.",
        handler: Handler::Server(quit),
        arity: -1,
        flags: Flags::NOSCRIPT
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(Flags::FAST)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY),
        categories: Categories::CONNECTION,
        group: Group::Connection,
        deprecated: Some(("7.2.0", "just closing the connection")),
        ..Row::DEFAULT
    },
    Row {
        name: "readonly",
        summary: "Lets a cluster replica answer reads on this connection.",
        handler: Handler::Server(readonly),
        arity: 1,
        flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
        categories: Categories::CONNECTION,
        since: "3.0.0",
        group: Group::Cluster,
        ..Row::DEFAULT
    },
    Row {
        name: "readwrite",
        summary: "Ends the effect of READONLY.",
        handler: Handler::Server(readwrite),
        arity: 1,
        flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
        categories: Categories::CONNECTION,
        since: "3.0.0",
        group: Group::Cluster,
        ..Row::DEFAULT
    },
    Row {
        name: "reset",
        summary: "Brings the connection back to the state of a new one.",
        handler: Handler::Server(reset),
        arity: 1,
        flags: Flags::NOSCRIPT
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(Flags::FAST)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY),
        categories: Categories::CONNECTION,
        since: "6.2.0",
        group: Group::Connection,
        ..Row::DEFAULT
    },
    Row {
        name: "select",
        summary: "Chooses the database that the connection works on.",
        handler: Handler::Server(select),
        arity: 2,
        flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
        categories: Categories::CONNECTION,
        group: Group::Connection,
        arguments: &[Argument::integer("index")],
        ..Row::DEFAULT
    },
    Row {
        name: "wait",
        summary: "Waits until replicas have the connection's writes.",
        handler: Handler::Server(wait),
        arity: 3,
        categories: Categories::CONNECTION,
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        since: "3.0.0",
        group: Group::Generic,
        arguments: &[Argument::integer("numreplicas"), Argument::integer("timeout")],
        ..Row::DEFAULT
    },
];

const NO_CLUSTER: CommandError = CommandError::err("This instance has cluster support disabled");
const WRONG_PASSWORD: CommandError =
    CommandError::with_code("WRONGPASS", "invalid username-password pair or user is disabled.");

fn asking(_context: &mut Context<'_>, _args: &Args<'_>, _reply: &mut Reply) -> CommandResult {
    Err(NO_CLUSTER)
}

fn readonly(_context: &mut Context<'_>, _args: &Args<'_>, _reply: &mut Reply) -> CommandResult {
    Err(NO_CLUSTER)
}

fn readwrite(_context: &mut Context<'_>, _args: &Args<'_>, _reply: &mut Reply) -> CommandResult {
    Err(NO_CLUSTER)
}

fn auth(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let (user, password) = match args.len() {
        2 if !context.server.settings.password_required.get() => {
            return Err(CommandError::err(
                "AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ));
        }
        2 => (&b"default"[..], args.at(1)),
        3 => (args.at(1), args.at(2)),
        _ => return Err(CommandError::SYNTAX),
    };
    authenticate(context, user, password)?;
    reply.ok();
    Ok(())
}

/// Takes the client for `user` if the password is right. There is one user, `default`; without a password set, any will do.
fn authenticate(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> CommandResult {
    if !are_right(context.server, user, password) {
        context.server.statistics.worker(context.session.client.worker).counters.acl_access_denied_auth.add(1);
        return Err(WRONG_PASSWORD);
    }
    context.session.authenticated = true;
    Ok(())
}

fn are_right(server: &Server, user: &[u8], password: &[u8]) -> bool {
    user == b"default" && server.settings.password().is_none_or(|expected| equal_in_constant_time(&expected, password))
}

/// Whether the texts are equal, in a time that depends on their lengths only, so that nobody can guess a password byte by byte.
fn equal_in_constant_time(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |difference, (one, other)| difference | (one ^ other));
    one.len() == other.len() && std::hint::black_box(difference) == 0
}

/// What a HELLO asks for.
struct Hello<'a> {
    protocol: Option<Protocol>,
    /// User and password.
    credentials: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

impl<'a> Hello<'a> {
    fn parse(args: &Args<'a>) -> Result<Self, CommandError> {
        let protocol = match args.get(1).map(|_| args.integer(1)) {
            None => None,
            Some(Ok(2)) => Some(Protocol::Resp2),
            Some(Ok(3)) => Some(Protocol::Resp3),
            Some(Ok(_)) => return Err(CommandError::with_code("NOPROTO", "unsupported protocol version")),
            Some(Err(_)) => return Err(CommandError::err("Protocol version is not an integer or out of range")),
        };
        let mut hello = Self { protocol, credentials: None, name: None };
        let mut at = 2;
        while at < args.len() {
            if args.is(at, "auth") && at + 2 < args.len() {
                hello.credentials = Some((args.at(at + 1), args.at(at + 2)));
                at += 3;
            } else if args.is(at, "setname") && at + 1 < args.len() {
                check_name(args.at(at + 1), b"Client names")?;
                hello.name = Some(args.at(at + 1));
                at += 2;
            } else {
                return Err(CommandError::quoting("Syntax error in HELLO option '", args.at(at), "'"));
            }
        }
        Ok(hello)
    }
}

/// The protocol that a HELLO changes to, unless it fails.
pub(crate) fn protocol_after_hello(server: &Server, args: &Args<'_>) -> Option<Protocol> {
    let hello = Hello::parse(args).ok()?;
    let is_let_in = hello.credentials.is_none_or(|(user, password)| are_right(server, user, password));
    hello.protocol.filter(|_| is_let_in)
}

fn hello(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let Hello { protocol, credentials, name } = Hello::parse(args)?;
    let protocol = protocol.unwrap_or_else(|| context.session.protocol());
    if let Some((user, password)) = credentials {
        authenticate(context, user, password)?;
    }
    if !context.authenticated() {
        return Err(CommandError::with_code(
            "NOAUTH",
            "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> \
             option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    // Messages from before are told in the protocol from before.
    context.deliver(reply);
    context.session.set_protocol(protocol);
    reply.set_protocol(protocol);
    if let Some(name) = name {
        context.session.client.labels().name = name.to_vec();
    }
    reply.map(7);
    let pair = |reply: &mut Reply, name: &str, value: &str| {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    };
    pair(reply, "server", "redis");
    pair(reply, "version", crate::REDIS_VERSION);
    reply.bulk(b"proto");
    reply.integer(if protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(context.session.client.id as i64);
    pair(reply, "mode", "standalone");
    pair(reply, "role", "master");
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

/// Names go into CLIENT LIST's lines, whose fields are separated by blanks. A zero byte ends them there, so what follows may be anything.
fn check_name(name: &[u8], what: &[u8]) -> CommandResult {
    if name.iter().take_while(|byte| **byte != 0).all(|byte| matches!(byte, b'!'..=b'~')) {
        return Ok(());
    }
    Err(CommandError::quoting("", what, " cannot contain spaces, newlines or special characters."))
}

fn echo(_context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply.bulk(args.at(1));
    Ok(())
}

fn ping(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    match args.len() {
        // Among messages, which are arrays, the answer is one too.
        1 | 2 if context.session.is_only_subscriber() => {
            reply.array(2);
            reply.bulk(b"pong");
            reply.bulk(args.get(1).unwrap_or_default());
        }
        1 => reply.simple("PONG"),
        2 => reply.bulk(args.at(1)),
        _ => return Err(CommandError::wrong_arity("ping")),
    }
    Ok(())
}

fn quit(context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    context.session.end(Ending::AfterReplies);
    reply.ok();
    Ok(())
}

fn reset(context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    context.stop_listening(reply);
    context.session.multi = None;
    exec::unwatch_all(context);
    let session = &mut *context.session;
    session.select(0);
    session.set_protocol(Protocol::Resp2);
    // A CLIENT REPLY SKIP right before still takes its effect: on this command.
    if session.replies != ReplyMode::Skip {
        session.replies = ReplyMode::On;
    }
    session.authenticated = !context.server.settings.password_required.get();
    session.client.labels().name.clear();
    // Relaxed, both: flags that order nothing.
    session.client.no_evict.store(false, Ordering::Relaxed);
    session.client.no_touch.store(false, Ordering::Relaxed);
    reply.set_protocol(Protocol::Resp2);
    reply.simple("RESET");
    Ok(())
}

fn select(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let number = args.integer(1)?;
    if i32::try_from(number).is_err() {
        return Err(CommandError::err("value is out of range, value must between -2147483648 and 2147483647"));
    }
    match usize::try_from(number) {
        Ok(database) if database < context.server.settings.databases.get() as usize => {
            context.session.select(database);
            reply.ok();
            Ok(())
        }
        _ => Err(CommandError::err("DB index is out of range")),
    }
}

fn client_getname(context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    match context.session.client.labels().name.as_slice() {
        [] => reply.null(),
        name => reply.bulk(name),
    }
    Ok(())
}

fn client_getredir(context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply.integer(tracking::redirection(context.server, context.session.client.id));
    Ok(())
}

fn client_help(context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let container = context.table.all().find(|command| &*command.full_name == "client");
    help::reply(container.expect("CLIENT HELP is a subcommand of CLIENT").row, reply);
    Ok(())
}

fn client_id(context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply.integer(context.session.client.id as i64);
    Ok(())
}

fn client_info(context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let mut text = Vec::new();
    describe(context, &context.session.client, &mut text);
    reply.verbatim("txt", &text);
    Ok(())
}

fn client_list(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let mut text = Vec::new();
    if args.len() == 2 {
        for client in context.server.clients.snapshot() {
            describe(context, &client, &mut text);
        }
    } else if args.len() == 4 && args.is(2, "type") {
        let class = ClientType::parse(args.at(3))?;
        for client in context.server.clients.snapshot() {
            if class.has(&client) {
                describe(context, &client, &mut text);
            }
        }
    } else if args.len() > 3 && args.is(2, "id") {
        for at in 3..args.len() {
            let id = args.integer(at).map_err(|_| CommandError::err("Invalid client ID"))?;
            if let Some(client) = u64::try_from(id).ok().and_then(|id| context.server.clients.get(id)) {
                describe(context, &client, &mut text);
            }
        }
    } else {
        return Err(CommandError::SYNTAX);
    }
    reply.verbatim("txt", &text);
    Ok(())
}

/// Appends one client's line.
fn describe(context: &Context<'_>, client: &ClientInfo, text: &mut Vec<u8>) {
    use std::io::Write;
    // Relaxed, all: figures that order nothing, some perhaps one batch old.
    let number = |figure: &crate::sync::AtomicUsize| figure.load(Ordering::Relaxed);
    let last_command = client.last_command.load(Ordering::Relaxed) as usize;
    let command = last_command.checked_sub(1).and_then(|index| context.table.all().find(|one| one.index == index));
    let labels = client.labels().clone();
    let (input, free) = (number(&client.query_buffer), number(&client.query_buffer_free));
    let (output, chunks) = (client.output_buffer(), number(&client.output_chunks));
    let memory = std::mem::size_of::<ClientInfo>() + input + free + output;
    let queued = client.queued.load(Ordering::Relaxed);
    let version = client.protocol.load(Ordering::Relaxed);
    let database = client.database.load(Ordering::Relaxed);
    // Writing to a vector does not fail.
    let _ = write!(text, "id={} addr={} laddr={}", client.id, client.address, client.local_address);
    let _ = write!(text, " fd={} name=", client.descriptor);
    text.extend_from_slice(&labels.name);
    let _ = write!(text, " age={} idle={}", client.connected.elapsed().as_secs(), client.idle().as_secs());
    let _ = write!(text, " flags={} db={database}", flags(context.server, client));
    let [channels, patterns, shard_channels] = Topic::ALL.map(|topic| client.subscriptions(topic));
    let _ = write!(text, " sub={channels} psub={patterns} ssub={shard_channels}");
    let _ = write!(text, " multi={queued} qbuf={input} qbuf-free={free} argv-mem=0 multi-mem=0 rbs=0 rbp=0");
    let _ = write!(
        text,
        " obl=0 oll={chunks} omem={output} tot-mem={memory} events={}",
        if output > 0 { "rw" } else { "r" }
    );
    let _ = write!(text, " cmd={} user=", command.map_or("NULL", |command| &*command.full_name));
    text.extend_from_slice(&labels.user);
    let redirection = tracking::redirection(context.server, client.id);
    let _ = write!(text, " redir={redirection} resp={version} lib-name=");
    text.extend_from_slice(&labels.library_name);
    text.extend_from_slice(b" lib-ver=");
    text.extend_from_slice(&labels.library_version);
    // As in Redis 8: the thread that serves the client.
    let _ = writeln!(text, " io-thread={}", client.worker);
}

/// The flags of CLIENT LIST that this version knows: monitor, subscriber, to be closed, Unix socket, no eviction, no touch.
fn flags(server: &Server, client: &ClientInfo) -> String {
    let tracking = server.trackers.of(client.id);
    // Relaxed, all: flags that order nothing.
    let all = [
        (client.is_monitor(), 'O'),
        (client.is_subscriber(), 'P'),
        (client.queued.load(Ordering::Relaxed) >= 0, 'x'),
        (client.is_blocked.load(Ordering::Relaxed), 'b'),
        (tracking.is_some(), 't'),
        (tracking.as_ref().is_some_and(|tracking| tracking.is_broken()), 'R'),
        (tracking.is_some(), 'B'),
        (client.is_killed(), 'A'),
        (client.is_unix, 'U'),
        (client.no_evict.load(Ordering::Relaxed), 'e'),
        (client.no_touch.load(Ordering::Relaxed), 'T'),
    ];
    let set: String = all.iter().filter(|(set, _)| *set).map(|(_, letter)| letter).collect();
    if set.is_empty() { "N".to_owned() } else { set }
}

/// Kinds of clients. There are no primaries and replicas in this version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientType {
    Normal,
    PubSub,
    Other,
}

impl ClientType {
    fn parse(name: &[u8]) -> Result<Self, CommandError> {
        let is = |one: &str| name.eq_ignore_ascii_case(one.as_bytes());
        if is("normal") {
            Ok(Self::Normal)
        } else if is("pubsub") {
            Ok(Self::PubSub)
        } else if ["master", "slave", "replica"].into_iter().any(is) {
            Ok(Self::Other)
        } else {
            Err(CommandError::quoting("Unknown client type '", name, "'"))
        }
    }

    fn has(self, client: &ClientInfo) -> bool {
        self == if client.is_subscriber() { Self::PubSub } else { Self::Normal }
    }
}

/// Which clients CLIENT KILL means: those that every filter given fits.
#[derive(Default)]
struct KillFilter<'a> {
    id: Option<u64>,
    class: Option<ClientType>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    user: Option<&'a [u8]>,
    /// Whether the killing client itself is meant too.
    me_too: bool,
}

impl<'a> KillFilter<'a> {
    fn parse(args: &Args<'a>) -> Result<Self, CommandError> {
        let mut filter = Self::default();
        for at in (2..args.len()).step_by(2) {
            if at + 1 >= args.len() {
                return Err(CommandError::SYNTAX);
            }
            let value = args.at(at + 1);
            if args.is(at, "id") {
                let id = args.integer(at + 1).ok().and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0);
                filter.id = Some(id.ok_or(CommandError::err("client-id should be greater than 0"))?);
            } else if args.is(at, "type") {
                filter.class = Some(ClientType::parse(value)?);
            } else if args.is(at, "addr") {
                filter.address = Some(value);
            } else if args.is(at, "laddr") {
                filter.local_address = Some(value);
            } else if args.is(at, "user") {
                if value != b"default" {
                    return Err(CommandError::quoting("No such user '", value, "'"));
                }
                filter.user = Some(value);
            } else if args.is(at, "skipme") {
                filter.me_too = match (args.is(at + 1, "yes"), args.is(at + 1, "no")) {
                    (true, _) => false,
                    (_, true) => true,
                    _ => return Err(CommandError::SYNTAX),
                };
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(filter)
    }

    fn fits(&self, client: &ClientInfo, me: u64) -> bool {
        self.id.is_none_or(|id| id == client.id)
            && self.class.is_none_or(|class| class.has(client))
            && self.address.is_none_or(|address| address == client.address.as_bytes())
            && self.local_address.is_none_or(|address| address == client.local_address.as_bytes())
            && self.user.is_none_or(|user| user == client.labels().user)
            && (self.me_too || client.id != me)
    }
}

fn client_kill(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    // The old form has one argument, an address.
    let old = args.len() == 3;
    let filter = match old {
        true => KillFilter { address: Some(args.at(2)), me_too: true, ..KillFilter::default() },
        false => KillFilter::parse(args)?,
    };
    let me = context.session.client.id;
    let mut killed = 0;
    for client in context.server.clients.snapshot() {
        if !filter.fits(&client, me) {
            continue;
        }
        killed += 1;
        if client.id == me {
            // It is to have its answer.
            context.session.end(Ending::AfterReplies);
        } else {
            client.kill();
        }
    }
    match (old, killed) {
        (false, _) => reply.integer(killed),
        (true, 0) => return Err(CommandError::err("No such client")),
        (true, _) => reply.ok(),
    }
    Ok(())
}

fn client_no_evict(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    // Relaxed: a flag that orders nothing.
    context.session.client.no_evict.store(on_or_off(args)?, Ordering::Relaxed);
    reply.ok();
    Ok(())
}

fn client_pause(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let all = match args.len() {
        3 => true,
        4 if args.is(3, "all") => true,
        4 if args.is(3, "write") => false,
        4 => return Err(CommandError::err("CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(too_many_arguments(args)),
    };
    context.server.pause.begin(milliseconds(args, 2)?.unwrap_or(0), all);
    reply.ok();
    Ok(())
}

/// A time-out in whole milliseconds; `None` where it is zero.
fn milliseconds(args: &Args<'_>, index: usize) -> Result<Option<u64>, CommandError> {
    let number = args.integer(index).map_err(|_| CommandError::err("timeout is not an integer or out of range"))?;
    blocking::checked_timeout_ms(number.into())
}

fn client_unpause(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    context.server.pause.end();
    context.server.clients.snapshot().iter().for_each(|client| client.wake());
    reply.ok();
    Ok(())
}

/// Who waits is data, so that this takes its turn within EXEC: before what is written behind it.
fn client_unblock(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    const UNBLOCKED: &[u8] = b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n";
    let error = match args.len() {
        3 => &[],
        4 if args.is(3, "timeout") => &[],
        4 if args.is(3, "error") => UNBLOCKED,
        4 => return Err(CommandError::err("CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
        _ => return Err(too_many_arguments(args)),
    };
    let client = args.integer(2)? as u64;
    let waited = blocking::give_up(tx, client, error);
    reply.integer(i64::from(waited));
    Ok(())
}

fn too_many_arguments(args: &Args<'_>) -> CommandError {
    CommandError::quoting("unknown subcommand or wrong number of arguments for '", args.at(1), "'. Try CLIENT HELP.")
}

fn wait(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let replicas = args.integer(1)?;
    let timeout_ms = milliseconds(args, 2)?;
    // There are no replicas: either none is asked for, or the wait is in vain.
    if replicas <= 0 || !context.may_wait {
        reply.integer(0);
        return Ok(());
    }
    let wait = Wait { keys: 0..0, timeout_ms, otherwise: Otherwise::Zero };
    let waiter = Waiter { client: context.session.client.id, protocol: context.session.protocol() };
    let limits = RuntimeLimits::from(&context.server.settings);
    let mut tx = Transaction::new(context.worker, context.scratch, 0, limits);
    tx.run(|tx| blocking::register(tx, waiter, args, &wait));
    drop(tx);
    context.session.block(&wait, context.session.replies == ReplyMode::On);
    Ok(())
}

fn client_no_touch(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    // Relaxed: a flag that orders nothing.
    context.session.client.no_touch.store(on_or_off(args)?, Ordering::Relaxed);
    reply.ok();
    Ok(())
}

fn on_or_off(args: &Args<'_>) -> Result<bool, CommandError> {
    match (args.is(2, "on"), args.is(2, "off")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(CommandError::SYNTAX),
    }
}

fn client_reply(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let replies = &mut context.session.replies;
    if args.is(2, "on") {
        *replies = ReplyMode::On;
        reply.ok();
    } else if args.is(2, "off") {
        *replies = ReplyMode::Off;
    } else if args.is(2, "skip") {
        if *replies != ReplyMode::Off {
            *replies = ReplyMode::SkipNext;
        }
    } else {
        return Err(CommandError::SYNTAX);
    }
    Ok(())
}

fn client_setinfo(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let (option, value) = (args.at(2), args.at(3));
    if args.is(2, "lib-name") {
        check_name(value, option)?;
        context.session.client.labels().library_name = value.to_vec();
    } else if args.is(2, "lib-ver") {
        check_name(value, option)?;
        context.session.client.labels().library_version = value.to_vec();
    } else {
        return Err(CommandError::quoting("Unrecognized option '", option, "'"));
    }
    reply.ok();
    Ok(())
}

fn client_setname(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    check_name(args.at(2), b"Client names")?;
    context.session.client.labels().name = args.at(2).to_vec();
    reply.ok();
    Ok(())
}
