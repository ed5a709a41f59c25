//! The server.

use caswell::command::{family::FAMILIES, table::Table};
use caswell::config::{Settings, load};
use caswell::server::Server;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let arguments: Vec<Vec<u8>> = std::env::args_os().skip(1).map(std::os::unix::ffi::OsStringExt::into_vec).collect();
    let (settings, mut table) = (Settings::new(), Table::new(FAMILIES));
    if let Err(error) = load::load(&settings, &load::from_arguments(&arguments), &mut table) {
        eprintln!("{error}");
        return std::process::ExitCode::FAILURE;
    }
    let server = std::sync::Arc::new(Server::new(settings, table));
    match caswell::net::run(server) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
