//! CLIENT's subcommands about tracking; their rows stand with CLIENT's others.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::command::Context;
use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::limits::TRACKING_PREFIXES_MAX;
use crate::resp::Reply;
use crate::server::{Server, Tracking};

/// The client that is told instead of this one: 0 where it is told itself, -1 where it does not track.
pub fn redirection(server: &Server, client: u64) -> i64 {
    server.trackers.of(client).map_or(-1, |tracking| tracking.redirect.unwrap_or(0) as i64)
}

/// CLIENT CACHING.
pub fn client_caching(context: &mut Context<'_>, args: &Args<'_>, _reply: &mut Reply) -> CommandResult {
    if !context.session.is_tracking {
        return Err(CommandError::err(
            "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    }
    // Neither mode goes together with broadcasting.
    Err(match () {
        () if args.is(2, "yes") => {
            CommandError::err("CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
        }
        () if args.is(2, "no") => {
            CommandError::err("CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
        }
        () => CommandError::SYNTAX,
    })
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
            () if !self.broadcasts => {
                Err(CommandError::err("this version tracks keys in the BCAST mode only: CLIENT TRACKING ON BCAST"))
            }
            () => Ok(()),
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
        let mut prefixes = context.server.trackers.of(client).map(|before| before.prefixes.clone()).unwrap_or_default();
        options.add_prefixes(&mut prefixes)?;
        let Options { redirect, no_loop, .. } = options;
        context.session.is_tracking = true;
        context.server.track(Tracking { client, redirect, no_loop, prefixes, ..Tracking::default() });
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
            let optional = [(tracking.no_loop, "noloop"), (tracking.is_broken(), "broken_redirect")];
            let set = optional.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag);
            ["on", "bcast"].into_iter().chain(set).collect()
        }
    };
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(redirection(context.server, client));
    reply.bulk(b"prefixes");
    let prefixes: Vec<&Bytes> = tracking.iter().flat_map(|tracking| &tracking.prefixes).collect();
    reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| reply.bulk(prefix));
    Ok(())
}
