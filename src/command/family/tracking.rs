//! CLIENT's subcommands about tracking; their rows stand with CLIENT's others.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::command::Context;
use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::command::keys::find_keys;
use crate::command::spec::Flags;
use crate::command::table::Command;
use crate::limits::TRACKING_PREFIXES_MAX;
use crate::resp::Reply;
use crate::server::{Mode, ReadMode, Server, Tracking};
use crate::session::{Caching, Session};

/// The client that is told instead of this one: 0 where it is told itself, -1 where it does not track.
pub fn redirection(server: &Server, client: u64) -> i64 {
    server.trackers.of(client).map_or(-1, |tracking| tracking.redirect.unwrap_or(0) as i64)
}

/// The keys that a client which tracks reads by this command, to be remembered.
pub fn tracked_keys(server: &Server, session: &Session, command: &Command, args: &Args<'_>) -> Vec<Bytes> {
    let tracking = server.trackers.of(session.client.id);
    let is_chosen = session.caching == Caching::Next;
    let is_remembered = match tracking.map(|tracking| tracking.mode.clone()) {
        Some(Mode::Reads(ReadMode::All)) => true,
        Some(Mode::Reads(ReadMode::OptIn)) => is_chosen,
        Some(Mode::Reads(ReadMode::OptOut)) => !is_chosen,
        Some(Mode::Broadcast(_)) | None => false,
    };
    if !is_remembered || !command.row.flags.has(Flags::READONLY) {
        return Vec::new();
    }
    let keys = find_keys(command.row, args).unwrap_or_default();
    keys.iter().map(|key| Bytes::copy_from_slice(args.at(key.index))).collect()
}

/// CLIENT CACHING.
pub fn client_caching(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let tracking = context.server.trackers.of(context.session.client.id);
    let Some(tracking) = tracking else {
        return Err(CommandError::err(
            "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    if args.is(2, "yes") {
        if tracking.mode != Mode::Reads(ReadMode::OptIn) {
            return Err(CommandError::err("CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."));
        }
    } else if args.is(2, "no") {
        if tracking.mode != Mode::Reads(ReadMode::OptOut) {
            return Err(CommandError::err("CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."));
        }
    } else {
        return Err(CommandError::SYNTAX);
    }
    context.session.caching = Caching::Next;
    reply.ok();
    Ok(())
}

/// The options of CLIENT TRACKING.
#[derive(Default)]
struct Options<'a> {
    redirect: Option<u64>,
    prefixes: Vec<&'a [u8]>,
    broadcasts: bool,
    opt_in: bool,
    opt_out: bool,
    no_loop: bool,
}

impl<'a> Options<'a> {
    fn parse(context: &Context<'_>, args: &Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut at = 3;
        while at < args.len() {
            let has_value = at + 1 < args.len();
            if args.is(at, "redirect") && has_value {
                at += 1;
                if options.redirect.is_some() {
                    return Err(CommandError::err("A client can only redirect to a single other client"));
                }
                let id = u64::try_from(args.integer(at)?).ok();
                let Some(client) = id.and_then(|id| context.server.clients.get(id)) else {
                    return Err(CommandError::err("The client ID you want redirect to does not exist"));
                };
                options.redirect = Some(client.id);
            } else if args.is(at, "bcast") {
                options.broadcasts = true;
            } else if args.is(at, "optin") {
                options.opt_in = true;
            } else if args.is(at, "optout") {
                options.opt_out = true;
            } else if args.is(at, "noloop") {
                options.no_loop = true;
            } else if args.is(at, "prefix") && has_value {
                at += 1;
                options.prefixes.push(args.at(at));
            } else {
                return Err(CommandError::SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }

    /// Whether the options go together.
    fn check(&self) -> CommandResult {
        match () {
            () if !self.broadcasts && !self.prefixes.is_empty() => {
                Err(CommandError::err("PREFIX option requires BCAST mode to be enabled"))
            }
            () if self.broadcasts && (self.opt_in || self.opt_out) => {
                Err(CommandError::err("OPTIN and OPTOUT are not compatible with BCAST"))
            }
            () if self.opt_in && self.opt_out => {
                Err(CommandError::err("You can't specify both OPTIN mode and OPTOUT mode"))
            }
            () => Ok(()),
        }
    }

    fn read_mode(&self) -> ReadMode {
        match () {
            () if self.opt_in => ReadMode::OptIn,
            () if self.opt_out => ReadMode::OptOut,
            () => ReadMode::All,
        }
    }

    /// Adds the prefixes to those that the client has named before; none may begin with another.
    fn add_prefixes(&self, prefixes: &mut BTreeSet<Bytes>) -> CommandResult {
        let overlap = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
        let error = |prefix: &[u8], kind: &str, other: &[u8]| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            CommandError::owned(format!(
                "Prefix '{}' overlaps with {kind} prefix '{}'. Prefixes for a single client must not overlap.",
                text(prefix),
                text(other)
            ))
        };
        for (position, prefix) in self.prefixes.iter().enumerate() {
            if let Some(other) = prefixes.iter().find(|other| overlap(prefix, other)) {
                return Err(error(prefix, "an existing", other));
            }
            if let Some(other) = self.prefixes[position + 1..].iter().find(|other| overlap(prefix, other)) {
                return Err(error(prefix, "another provided", other));
            }
        }
        prefixes.extend(self.prefixes.iter().map(|prefix| Bytes::copy_from_slice(prefix)));
        if self.prefixes.is_empty() {
            prefixes.insert(Bytes::new());
        }
        if prefixes.len() > TRACKING_PREFIXES_MAX { Err(CommandError::err("too many prefixes")) } else { Ok(()) }
    }
}

/// CLIENT TRACKING.
pub fn client_tracking(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let options = Options::parse(context, args)?;
    let client = context.session.client.id;
    if args.is(2, "on") {
        options.check()?;
        let before = context.server.trackers.of(client);
        let was_broadcasting = before.as_ref().map(|before| matches!(before.mode, Mode::Broadcast(_)));
        if was_broadcasting.is_some_and(|was| was != options.broadcasts) {
            return Err(CommandError::err(
                "You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
            ));
        }
        let mode = if options.broadcasts {
            let mut prefixes: BTreeSet<Bytes> =
                before.iter().flat_map(|before| before.mode.prefixes().cloned()).collect();
            options.add_prefixes(&mut prefixes)?;
            Mode::Broadcast(prefixes)
        } else {
            let read_mode = options.read_mode();
            if before.is_some_and(|before| before.mode != Mode::Reads(read_mode)) {
                return Err(CommandError::err(
                    "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.",
                ));
            }
            Mode::Reads(read_mode)
        };
        let Options { redirect, no_loop, .. } = options;
        context.session.is_tracking = true;
        context.server.track(Tracking { client, redirect, no_loop, mode, redirect_is_broken: Default::default() });
        // From here on no commit goes unnoticed that began before.
        drop(context.worker.hold_gate());
    } else if args.is(2, "off") {
        context.session.is_tracking = false;
        context.server.untrack(client);
    } else {
        return Err(CommandError::SYNTAX);
    }
    reply.ok();
    Ok(())
}

/// CLIENT TRACKINGINFO.
pub fn client_trackinginfo(context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let client = context.session.client.id;
    let tracking = context.server.trackers.of(client);
    let flags: Vec<&str> = match &tracking {
        None => vec!["off"],
        Some(tracking) => {
            let caching = context.session.caching == Caching::Next;
            let optional = [
                (matches!(tracking.mode, Mode::Broadcast(_)), "bcast"),
                (tracking.mode == Mode::Reads(ReadMode::OptIn), "optin"),
                (caching && tracking.mode == Mode::Reads(ReadMode::OptIn), "caching-yes"),
                (tracking.mode == Mode::Reads(ReadMode::OptOut), "optout"),
                (caching && tracking.mode == Mode::Reads(ReadMode::OptOut), "caching-no"),
                (tracking.no_loop, "noloop"),
                (tracking.is_broken(), "broken_redirect"),
            ];
            std::iter::once("on").chain(optional.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag)).collect()
        }
    };
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(redirection(context.server, client));
    reply.bulk(b"prefixes");
    let prefixes: Vec<&Bytes> = tracking.iter().flat_map(|tracking| tracking.mode.prefixes()).collect();
    reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| reply.bulk(prefix));
    Ok(())
}
