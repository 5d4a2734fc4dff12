//! Tests that end early without a note, found in the sources.

mod calls;

use calls::{Notes, calls_in, calls_in_block};
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The faults of the tests of one crate, given its files by name: a line each.
pub fn complaints(sources: &[(String, String)]) -> Vec<String> {
    let parse = |(name, text): &(String, String)| match syn::parse_file(text) {
        Ok(file) => (name.clone(), file),
        Err(error) => panic!("{name}: {error}"),
    };
    let files: Vec<(String, syn::File)> = sources.iter().map(parse).collect();
    let notes = Notes::of(files.iter().map(|(_, file)| file));
    let mut found = Vec::new();
    for (name, file) in &files {
        let mut look =
            Look { notes: &notes, noted: Vec::new(), inside: false, found: BTreeSet::new() };
        look.visit_file(file);
        found.extend(look.found.into_iter().map(|(line, told)| format!("{name}:{line}: {told}")));
        let mut prints = Prints(Vec::new());
        prints.visit_file(file);
        let told = "a skip that is only printed: trunkline_skip::skipped";
        found.extend(prints.0.iter().map(|line| format!("{name}:{line}: {told}")));
    }
    found
}

/// Goes through the functions of a file.
struct Look<'a> {
    notes: &'a Notes,
    /// For each construct around the present place, whether it notes a skip.
    noted: Vec<bool>,
    /// Whether the place is within a test.
    inside: bool,
    found: BTreeSet<(usize, &'static str)>,
}

impl Look<'_> {
    fn within(&mut self, noted: bool, work: impl FnOnce(&mut Self)) {
        self.noted.push(noted);
        work(self);
        self.noted.pop();
    }

    fn notes(&self, calls: &BTreeSet<String>) -> bool {
        calls.iter().any(|call| self.notes.has(call))
    }
}

fn has(attributes: &[syn::Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

impl<'ast> Visit<'ast> for Look<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let is_test = has(&function.attrs, "test") || function.sig.ident == "main";
        if is_test && has(&function.attrs, "ignore") {
            let line = function.sig.span().start().line;
            self.found
                .insert((line, "is ignored: a test that cannot run here is skipped with a note"));
        }
        let before =
            (std::mem::replace(&mut self.inside, is_test), std::mem::take(&mut self.noted));
        visit::visit_item_fn(self, function);
        (self.inside, self.noted) = before;
    }

    // What a closure returns from is not the test.
    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}

    fn visit_local(&mut self, local: &'ast syn::Local) {
        let noted = local.init.as_ref().is_some_and(|init| self.notes(&calls_in(&init.expr)));
        self.within(noted, |look| visit::visit_local(look, local));
    }

    fn visit_expr_if(&mut self, choice: &'ast syn::ExprIf) {
        let asked = self.notes(&calls_in(&choice.cond));
        let done = self.notes(&calls_in_block(&choice.then_branch));
        self.within(asked || done, |look| look.visit_block(&choice.then_branch));
        if let Some((_, other)) = &choice.else_branch {
            self.within(asked, |look| look.visit_expr(other));
        }
    }

    fn visit_expr_match(&mut self, choice: &'ast syn::ExprMatch) {
        let asked = self.notes(&calls_in(&choice.expr));
        for arm in &choice.arms {
            let noted = asked || self.notes(&calls_in(&arm.body));
            self.within(noted, |look| look.visit_expr(&arm.body));
        }
    }

    fn visit_expr_return(&mut self, end: &'ast syn::ExprReturn) {
        // `return rest(…)` hands over: the test goes on there.
        let goes_on = matches!(end.expr.as_deref(), Some(syn::Expr::Call(_)));
        if self.inside && !goes_on && !self.noted.contains(&true) {
            let line = end.span().start().line;
            self.found.insert((line, "ends early without a note: trunkline_skip::skipped"));
        }
    }
}

/// Lines that print what begins like a note.
struct Prints(Vec<usize>);

impl<'ast> Visit<'ast> for Prints {
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let name = call.path.segments.last().map(|last| last.ident.to_string());
        let prints = matches!(name.as_deref(), Some("print" | "println" | "eprint" | "eprintln"));
        let first = call.tokens.clone().into_iter().next().map(|token| token.to_string());
        let skips = first.is_some_and(|text| text.to_lowercase().starts_with("\"skip"));
        if prints && skips {
            self.0.push(call.span().start().line);
        }
    }
}
