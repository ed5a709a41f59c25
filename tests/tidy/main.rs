//! What compilers do not check: layering, safety and ordering notes, leftovers, dead files, the changelog's form.
//!
//! Each check is a function from text to complaints, so that beside the run over the tree a planted fault can be fed to it:
//! a check that has not caught one is not trusted.

mod layers;
mod notes;
mod pages;
mod source;

use source::{Complaints, SourceFile};

/// Runs a check over all files and fails with every complaint.
fn over_tree(files: &[SourceFile], check: impl Fn(&SourceFile, &mut Complaints)) {
    assert!(!files.is_empty(), "no files were found to check");
    let mut complaints = Complaints::default();
    for file in files {
        check(file, &mut complaints);
    }
    complaints.assert_none();
}

#[test]
fn lower_layers_never_name_higher_ones() {
    over_tree(&source::rust_files(&["src"]), layers::check);
}

#[test]
fn every_source_file_is_reachable() {
    let files = source::rust_files(&["src"]);
    over_tree(&files, |file, complaints| notes::reachable(file, &files, complaints));
}

#[test]
fn every_file_begins_with_its_story() {
    over_tree(&source::rust_files(source::ALL), notes::story);
}

#[test]
fn every_ordering_is_argued() {
    over_tree(&source::rust_files(source::ALL), notes::orderings);
}

#[test]
fn every_unsafe_is_argued() {
    over_tree(&source::rust_files(source::ALL), notes::safety);
}

#[test]
fn nothing_is_left_over() {
    over_tree(&source::text_files(), notes::leftovers);
}

#[test]
fn no_unwrap_outside_tests() {
    over_tree(&source::rust_files(&["src"]), notes::unwraps);
}

#[test]
fn the_changelog_keeps_its_form() {
    let mut complaints = Complaints::default();
    pages::changelog(&source::read("CHANGELOG.md"), &mut complaints);
    complaints.assert_none();
}

#[test]
fn the_stages_fit_the_runner_and_the_time() {
    let mut complaints = Complaints::default();
    pages::stages(
        &source::read("docs/testing.md"),
        &source::read(".ci/check"),
        &source::test_targets(),
        &mut complaints,
    );
    complaints.assert_none();
}
