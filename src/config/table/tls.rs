//! TLS.

use super::super::setting::{Setting, Topic};

const NO_TLS: &str = "There is no TLS in this version.";

const SETTINGS: &[Setting] = &[
    Setting::integer("tls-port", 0, 65535, "0", "TCP port for TLS; 0 for none.")
        .only(&["0"], "TLS is not part of this version."),
    Setting::text("tls-cert-file", "", "Our certificate.").no_effect(NO_TLS),
    Setting::text("tls-key-file", "", "Its key.").no_effect(NO_TLS),
    Setting::text("tls-key-file-pass", "", "Pass phrase of the key.").no_effect(NO_TLS),
    Setting::text("tls-client-cert-file", "", "Certificate for connections to others.").no_effect(NO_TLS),
    Setting::text("tls-client-key-file", "", "Its key.").no_effect(NO_TLS),
    Setting::text("tls-client-key-file-pass", "", "Pass phrase of that key.").no_effect(NO_TLS),
    Setting::text("tls-dh-params-file", "", "Diffie-Hellman parameters.").no_effect(NO_TLS),
    Setting::text("tls-ca-cert-file", "", "Certificates of those we trust.").no_effect(NO_TLS),
    Setting::text("tls-ca-cert-dir", "", "Directory of such certificates.").no_effect(NO_TLS),
    Setting::choice("tls-auth-clients", &["no", "yes", "optional"], "yes", "Whether clients must show a certificate.")
        .no_effect(NO_TLS),
    Setting::choice(
        "tls-auth-clients-user",
        &["CN", "URI", "off"],
        "off",
        "Which part of a client's certificate names its user.",
    )
    .no_effect(NO_TLS),
    Setting::integer(
        "tls-auto-reload-interval",
        0,
        i32::MAX as i64,
        "0",
        "Seconds after which certificates are read again; 0 for never.",
    )
    .no_effect(NO_TLS),
    Setting::yes_no("tls-replication", "no", "TLS for replication.").only(&["no"], "TLS is not part of this version."),
    Setting::yes_no("tls-cluster", "no", "TLS between nodes.").only(&["no"], "TLS is not part of this version."),
    Setting::text("tls-protocols", "", "Versions of TLS.").no_effect(NO_TLS),
    Setting::text("tls-ciphers", "", "Ciphers up to TLS 1.2.").no_effect(NO_TLS),
    Setting::text("tls-ciphersuites", "", "Ciphers of TLS 1.3.").no_effect(NO_TLS),
    Setting::yes_no("tls-prefer-server-ciphers", "no", "Whether our order of ciphers counts.").no_effect(NO_TLS),
    Setting::yes_no("tls-session-caching", "yes", "Whether sessions are resumed.").no_effect(NO_TLS),
    Setting::integer("tls-session-cache-size", 0, i32::MAX as i64, "20480", "Sessions remembered.").no_effect(NO_TLS),
    Setting::integer("tls-session-cache-timeout", 0, i32::MAX as i64, "300", "Seconds they are remembered.")
        .no_effect(NO_TLS),
];

/// The topic.
pub const TOPIC: Topic = Topic { title: "TLS", settings: SETTINGS };
